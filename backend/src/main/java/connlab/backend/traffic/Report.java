package connlab.backend.traffic;

import connlab.backend.waitingroom.WaitingRoom;

/**
 * What a server's page reports, whichever server it is.
 *
 * @param settings the server's settings in force, each under its own name
 */
public record Report(
        Object settings,
        Connections connections,
        Threads threads,
        Requests requests,
        WaitingRoom.Statistics waitingRoom) {

    /**
     * Connections.
     *
     * @param current accepted and open
     * @param keepAlive the current ones that wait for the client's next, or first, request
     */
    public record Connections(int current, int keepAlive) {}

    /**
     * Request threads.
     *
     * @param current null with virtual threads
     * @param busy null with virtual threads
     * @param max those that requests can have at most; null if nothing bounds them
     */
    public record Threads(Integer current, Integer busy, Integer max) {}

    /**
     * Requests, counted when their answer is complete.
     *
     * @param errors those answered with a status of 400 or more
     * @param processingMs the time they took in sum, in milliseconds
     * @param bytesSent the bytes of their bodies
     */
    public record Requests(int count, int errors, long processingMs, long bytesSent) {}
}
