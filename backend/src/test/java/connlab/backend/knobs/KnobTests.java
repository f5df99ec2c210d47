package connlab.backend.knobs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class KnobTests {

    @ParameterizedTest
    @CsvSource({
        "ACCEPT_COUNT, 1",
        "ACCEPT_COUNT, 65535",
        "MAX_CONNECTIONS, 2147483647",
        "KEEP_ALIVE_TIMEOUT, 1ms",
        "KEEP_ALIVE_TIMEOUT, 20000ms",
        "MAX_KEEP_ALIVE_REQUESTS, -1",
        "MAX_KEEP_ALIVE_REQUESTS, 1",
        "VIRTUAL_THREADS, true",
        "VIRTUAL_THREADS, false",
        "ADMISSION_PER_SECOND, 50",
        "ADMISSION_PER_SECOND, 0.5",
        "MAX_TOKENS, 100000",
    })
    void takesAGoodValue(Knob knob, String value) {
        assertThat(knob.fault(value)).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({
        "ACCEPT_COUNT, 0",
        "ACCEPT_COUNT, -1",
        "ACCEPT_COUNT, 2147483648",
        "ACCEPT_COUNT, 99999999999999999999",
        "ACCEPT_COUNT, 1e3",
        "ACCEPT_COUNT, ten",
        "ACCEPT_COUNT, ''",
        "ACCEPT_COUNT, ' 1'",
        "KEEP_ALIVE_TIMEOUT, 0ms",
        "KEEP_ALIVE_TIMEOUT, 20",
        "KEEP_ALIVE_TIMEOUT, 20s",
        "KEEP_ALIVE_TIMEOUT, -1ms",
        "KEEP_ALIVE_TIMEOUT, 1.5ms",
        "KEEP_ALIVE_TIMEOUT, ms",
        "MAX_KEEP_ALIVE_REQUESTS, 0",
        "MAX_KEEP_ALIVE_REQUESTS, -2",
        "VIRTUAL_THREADS, yes",
        "VIRTUAL_THREADS, True",
        "ADMISSION_PER_SECOND, 0",
        "ADMISSION_PER_SECOND, -1",
        "ADMISSION_PER_SECOND, NaN",
        "ADMISSION_PER_SECOND, 1000001",
    })
    void refusesABadValueAndNamesTheVariable(Knob knob, String value) {
        assertThat(knob.fault(value))
                .hasValueSatisfying(fault -> assertThat(fault)
                        .startsWith("CONNLAB_" + knob + "=" + value + " is refused: it must be ")
                        .doesNotContain("\n"));
    }

    @ParameterizedTest
    @EnumSource
    void refusesToBeMissing(Knob knob) {
        assertThat(knob.fault(null)).hasValue("CONNLAB_" + knob + " is not set");
    }

    @Test
    void saysWhatAValueMustBe() {
        assertThat(Knob.MAX_KEEP_ALIVE_REQUESTS.fault("0"))
                .hasValue("CONNLAB_MAX_KEEP_ALIVE_REQUESTS=0 is refused: "
                        + "it must be -1 (no limit) or a whole number from 1 to 2147483647");
    }
}
