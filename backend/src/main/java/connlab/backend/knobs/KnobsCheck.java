package connlab.backend.knobs;

import java.util.List;
import java.util.stream.Stream;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.Environment;
import org.springframework.util.StringUtils;

/** Refuses to start without a knob, before any bean is made. */
class KnobsCheck implements ApplicationContextInitializer<ConfigurableApplicationContext> {

    /** @throws KnobsRefusedException naming every variable that is missing */
    @Override
    public void initialize(ConfigurableApplicationContext context) {
        Environment environment = context.getEnvironment();
        List<String> faults = Stream.of(Knob.values())
                .map(Knob::variable)
                .filter(variable -> !StringUtils.hasText(environment.getProperty(variable)))
                .map(variable -> variable + " is not set")
                .toList();
        if (!faults.isEmpty()) {
            throw new KnobsRefusedException(faults);
        }
    }
}
