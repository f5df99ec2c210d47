package connlab.backend.waitingroom;

import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

@Configuration(proxyBeanMethods = false)
@EnableConfigurationProperties(WaitingRoomProperties.class)
class WaitingRoomConfiguration {

    @Bean
    WaitingRoom waitingRoom(WaitingRoomProperties properties) {
        return new WaitingRoom(properties, new SteadyClock());
    }
}
