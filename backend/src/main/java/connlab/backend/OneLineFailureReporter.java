package connlab.backend;

import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalysisReporter;

/**
 * Says why the server did not start in one line on standard error, which the lab can show as it is. It replaces Spring
 * Boot's own report of many lines, which application.yaml turns off.
 */
class OneLineFailureReporter implements FailureAnalysisReporter {

    @Override
    public void report(FailureAnalysis analysis) {
        System.err.println("backend: " + analysis.getDescription().strip().replaceAll("\\s*\\R\\s*", " "));
    }
}
