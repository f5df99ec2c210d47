package connlab.backend.knobs;

import java.util.function.Predicate;
import java.util.regex.Pattern;

/**
 * What the text of a knob must be.
 *
 * @param says the rule in words, to stand after "must be"
 * @param allows whether a text keeps the rule
 */
record Rule(String says, Predicate<String> allows) {

    private static final Pattern INTEGER = Pattern.compile("-?\\d{1,18}");
    private static final Pattern DECIMAL = Pattern.compile("\\d{1,9}(\\.\\d{1,9})?");

    /** A whole number from {@code least} to {@code most}, both allowed. */
    static Rule integer(long least, long most) {
        return new Rule("a whole number from " + least + " to " + most, text -> isBetween(text, least, most));
    }

    /** -1 for "no limit", or a whole number from 1. */
    static Rule limit() {
        return new Rule(
                "-1 (no limit) or a whole number from 1 to " + Integer.MAX_VALUE,
                text -> text.equals("-1") || isBetween(text, 1, Integer.MAX_VALUE));
    }

    /** A duration of at least a millisecond: Tomcat reads 0 as "for ever". */
    static Rule duration() {
        return new Rule(
                "whole milliseconds from 1ms to " + Integer.MAX_VALUE + "ms",
                text -> text.endsWith("ms") && isBetween(text.substring(0, text.length() - 2), 1, Integer.MAX_VALUE));
    }

    static Rule truth() {
        return new Rule("true or false", text -> text.equals("true") || text.equals("false"));
    }

    /** A number above 0 and up to {@code most}, with or without decimals. */
    static Rule rate(long most) {
        return new Rule(
                "a number above 0 and up to " + most,
                text -> DECIMAL.matcher(text).matches()
                        && Double.parseDouble(text) > 0
                        && Double.parseDouble(text) <= most);
    }

    private static boolean isBetween(String text, long least, long most) {
        if (!INTEGER.matcher(text).matches()) {
            return false;
        }
        long value = Long.parseLong(text);
        return least <= value && value <= most;
    }
}
