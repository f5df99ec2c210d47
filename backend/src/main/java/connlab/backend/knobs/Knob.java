package connlab.backend.knobs;

/**
 * The knobs of this server; application.yaml says which setting each one sets. role.yaml says what each may be, and the
 * lab has checked it.
 */
enum Knob {
    ACCEPT_COUNT,
    MAX_CONNECTIONS,
    THREADS_MAX,
    THREADS_MIN_SPARE,
    KEEP_ALIVE_TIMEOUT,
    MAX_KEEP_ALIVE_REQUESTS,
    CONNECTION_TIMEOUT,
    VIRTUAL_THREADS,
    ADMISSION_PER_SECOND,
    POLLING_PERIOD,
    TOKEN_TIMEOUT,
    MAX_TOKENS;

    /** The environment variable that brings this knob. */
    String variable() {
        return "CONNLAB_" + name();
    }
}
