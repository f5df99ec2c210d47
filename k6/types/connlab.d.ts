/** The lab's extension of k6. Importing it is enough for a script's dials to be recorded. */
declare module 'k6/x/connlab' {
  const connlab: {
    /** Appends an event of this VU to events.jsonl, with the moment of the call. */
    event(name: string, data: object): void;
    /**
     * From here on each request of this VU makes a connection of its own. The client closes it first, having read the
     * whole answer, or waits until the server has closed it. With an interval above 0, requests send the lines of their
     * header one by one, with that many milliseconds between two.
     */
    connectionPerRequest(closesFirst: string, lineInterval_ms: number): void;
    /**
     * Begins a connection to `host:port` and holds it for `hold_ms` milliseconds without ever completing its handshake.
     * The dial is recorded as failed, `half-open`.
     */
    holdHalfOpen(address: string, hold_ms: number): void;
    /** setup() or teardown() calls it to have its dials recorded; the dials of users are recorded in any case. */
    record(): void;
    /** The folder of `--out connlab=<folder>`, or '' without that output. */
    folder(): string;
  };
  export default connlab;
}
