package connlab.backend.knobs;

import java.util.Optional;

/**
 * The knobs of this server and what each may be; application.yaml says which setting each one sets.
 *
 * <p>Checked here, before anything is bound, because Spring Boot passes over some values that Tomcat could not use (an
 * accept count of 0) without a word, and a run on settings that nobody asked for is worth nothing.
 */
enum Knob {
    /** From 1: Java takes a backlog of 0 or less for 50. */
    ACCEPT_COUNT(Rule.integer(1, Integer.MAX_VALUE)),
    MAX_CONNECTIONS(Rule.integer(1, Integer.MAX_VALUE)),
    THREADS_MAX(Rule.integer(1, 100_000)),
    THREADS_MIN_SPARE(Rule.integer(1, 100_000)),
    KEEP_ALIVE_TIMEOUT(Rule.duration()),
    MAX_KEEP_ALIVE_REQUESTS(Rule.limit()),
    CONNECTION_TIMEOUT(Rule.duration()),
    VIRTUAL_THREADS(Rule.truth()),
    ADMISSION_PER_SECOND(Rule.rate(1_000_000)),
    POLLING_PERIOD(Rule.duration()),
    TOKEN_TIMEOUT(Rule.duration()),
    MAX_TOKENS(Rule.integer(1, 10_000_000));

    private final Rule rule;

    Knob(Rule rule) {
        this.rule = rule;
    }

    /** The environment variable that brings this knob. */
    String variable() {
        return "CONNLAB_" + name();
    }

    /**
     * What is wrong with a value of this knob.
     *
     * @param value the variable's text, or null if it is not set
     * @return one sentence that names the variable, or nothing if the value is good
     */
    Optional<String> fault(String value) {
        if (value == null) {
            return Optional.of(variable() + " is not set");
        }
        if (!rule.allows().test(value)) {
            return Optional.of(variable() + "=" + value + " is refused: it must be " + rule.says());
        }
        return Optional.empty();
    }
}
