package connlab.backend.knobs;

import java.util.List;
import org.springframework.boot.ExitCodeGenerator;

/** Knobs are missing; the message names each variable. */
class KnobsRefusedException extends RuntimeException implements ExitCodeGenerator {

    private static final long serialVersionUID = 1;

    KnobsRefusedException(List<String> faults) {
        super(String.join("; ", faults));
    }

    /** The lab's exit code for bad input. */
    @Override
    public int getExitCode() {
        return 2;
    }
}
