package connlab.backend.knobs;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Turns {@link KnobsRefusedException} into its message alone, without a stack trace. */
class KnobsRefusedFailureAnalyzer extends AbstractFailureAnalyzer<KnobsRefusedException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, KnobsRefusedException cause) {
        return new FailureAnalysis(cause.getMessage(), null, cause);
    }
}
