package connlab.backend.waitingroom;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * The waiting room's knobs.
 *
 * @param admissionPerSecond turns given per second, above 0
 * @param pollingPeriod how long the server asks users to wait between two looks
 * @param tokenTimeout how long a token lives without a look
 * @param maxTokens how many tokens there may be at once, waiting and let in
 */
@ConfigurationProperties("waiting-room")
public record WaitingRoomProperties(
        double admissionPerSecond, Duration pollingPeriod, Duration tokenTimeout, int maxTokens) {}
