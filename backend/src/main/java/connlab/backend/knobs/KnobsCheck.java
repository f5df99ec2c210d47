package connlab.backend.knobs;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.Environment;

/** Refuses to start on a missing or bad knob, before any bean is made. */
class KnobsCheck implements ApplicationContextInitializer<ConfigurableApplicationContext> {

    /** @throws KnobsRefusedException naming every variable that is missing or bad */
    @Override
    public void initialize(ConfigurableApplicationContext context) {
        Environment environment = context.getEnvironment();
        List<String> faults = Stream.of(Knob.values())
                .map(knob -> knob.fault(environment.getProperty(knob.variable())))
                .flatMap(Optional::stream)
                .toList();
        if (!faults.isEmpty()) {
            throw new KnobsRefusedException(faults);
        }
        requireRoomForSpareThreads(environment);
    }

    /** Tomcat would take the smaller number for both without a word. */
    private static void requireRoomForSpareThreads(Environment environment) {
        String spare = environment.getRequiredProperty(Knob.THREADS_MIN_SPARE.variable());
        String max = environment.getRequiredProperty(Knob.THREADS_MAX.variable());
        if (Integer.parseInt(spare) > Integer.parseInt(max)) {
            throw new KnobsRefusedException(List.of(Knob.THREADS_MIN_SPARE.variable() + "=" + spare
                    + " is refused: it must not exceed " + Knob.THREADS_MAX.variable() + "=" + max));
        }
    }
}
