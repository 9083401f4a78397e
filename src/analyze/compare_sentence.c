/* The answer in one sentence. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/write.h>

#include "analyze/compare.h"

#define MANY_TIMES 3.0 /* speedups from here on are said in times, not in percent */

struct sentence {
    char text[1024];
    size_t used;
    bool ascii;
};

static void say(struct sentence *sentence, const char *format, ...) SW_PRINTF(2, 3);

static void say(struct sentence *sentence, const char *format, ...)
{
    const size_t room = sizeof sentence->text - sentence->used;
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(sentence->text + sentence->used, room, format, arguments);
    va_end(arguments);
    if (length > 0) {
        sentence->used += (size_t)length < room ? (size_t)length : room - 1;
    }
}

/* Tenths below ten. Not %.1f: its decimal point follows the program's locale. */
static void say_number(struct sentence *sentence, double value)
{
    const double size = fabs(value);
    if (size >= 9.95) {
        say(sentence, "%.0f", size < 1e9 ? size : 1e9);
    } else {
        const unsigned tenths = (unsigned)(size * 10 + 0.5);
        say(sentence, "%u.%u", tenths / 10, tenths % 10);
    }
}

static void say_signed(struct sentence *sentence, double value)
{
    const bool negative = value < 0;
    say(sentence, "%s", negative ? (sentence->ascii ? "-" : "\u2212") : "+");
    say_number(sentence, value);
}

static const char *range(const struct sentence *sentence)
{
    return sentence->ascii ? " to " : "\u2026";
}

static void say_duration(struct sentence *sentence, double ns)
{
    char text[24];
    sw_text_duration(text, fabs(ns), sentence->ascii);
    say(sentence, "%s", text);
}

/* "faster by 31 % (28…34)", from a ratio and its interval. */
static void say_ratio(struct sentence *sentence, double speedup, double low, double high,
                      bool tested)
{
    const bool faster = speedup >= 1;
    if (speedup >= MANY_TIMES) {
        say_number(sentence, speedup);
        say(sentence, " times as fast");
    } else {
        say(sentence, "%s by ", faster ? "faster" : "slower");
        say_number(sentence, (speedup - 1) * 100);
        say(sentence, " %%");
    }
    if (!tested) {
        say(sentence, " (no test)");
        return;
    }
    const bool times = speedup >= MANY_TIMES;
    const double near = faster ? low : high;
    const double far = faster ? high : low;
    say(sentence, " (");
    say_number(sentence, times ? near : (near - 1) * 100);
    say(sentence, "%s", range(sentence));
    say_number(sentence, times ? far : (far - 1) * 100);
    say(sentence, ")");
}

static void say_same(struct sentence *sentence, const sw_compared *compared,
                     double threshold)
{
    if (!compared->tested) {
        say(sentence, "no difference of more than ");
        say_number(sentence, threshold);
        say(sentence, " %% (no test)");
        return;
    }
    say(sentence, "no difference that these data can show (");
    say_signed(sentence, (compared->low - 1) * 100);
    say(sentence, "%s", range(sentence));
    say_signed(sentence, (compared->high - 1) * 100);
    say(sentence, " %%)");
}

static void say_times(struct sentence *sentence, const sw_comparison *comparison,
                      const sw_compared *compared)
{
    const sw_compared_side *before = &comparison->baseline;
    const sw_compared_side *after = &compared->side;
    char was[32];
    char is[32];
    switch (compared->basis) {
    case SW_BASIS_SAMPLES:
        if (before->samples_per_s > 0 && after->samples_per_s > 0 &&
            before->samples_per_s < 1e18 && after->samples_per_s < 1e18) {
            sw_text_count(was, (uint64_t)(before->samples_per_s + 0.5));
            sw_text_count(is, (uint64_t)(after->samples_per_s + 0.5));
            say(sentence, ": %s samples/s before, %s now", was, is);
        }
        return;
    case SW_BASIS_STEPS:
        say(sentence, ": ");
        say_duration(sentence, before->step_ns);
        say(sentence, " a step before, ");
        say_duration(sentence, after->step_ns);
        say(sentence, " now");
        return;
    case SW_BASIS_DURATION:
    case SW_BASIS_FUNCTIONS:
    default:
        say(sentence, ": ");
        say_duration(sentence, before->duration_s * 1e9);
        say(sentence, compared->basis == SW_BASIS_DURATION ? " in all before, "
                                                           : " in functions before, ");
        say_duration(sentence, after->duration_s * 1e9);
        say(sentence, " now");
    }
}

/* The part that explains most of the change, in its direction. */
static void say_cause(struct sentence *sentence, const struct sw__result *result)
{
    const sw_compared *compared = &result->compared;
    const bool functions = compared->basis == SW_BASIS_FUNCTIONS;
    const size_t kind = functions ? SW_COMPARED_FUNCTION : SW_COMPARED_PHASE;
    for (size_t i = 0; i < result->part_count[kind]; i++) {
        const sw_compared_part *part = &result->parts[kind][i];
        if ((functions || part->changed == 1) && part->difference_ns != 0 &&
            (part->difference_ns < 0) == (compared->verdict == SW_VERDICT_FASTER)) {
            const char *minus = sentence->ascii ? "-" : "\u2212";
            say(sentence, ", of which %.100s %s", part->name,
                part->difference_ns < 0 ? minus : "+");
            say_duration(sentence, part->difference_ns);
            return;
        }
    }
}

static void say_median(struct sentence *sentence, const sw_compared *compared)
{
    if (compared->median_low > 1 || compared->median_high < 1) {
        say(sentence, "; the median step is ");
        say_ratio(sentence, compared->median_speedup, compared->median_low,
                  compared->median_high, true);
    }
}

size_t sw_comparison_sentence(const sw_comparison *comparison, size_t index, bool ascii,
                              char *out, size_t size)
{
    struct sentence sentence = {.ascii = ascii};
    if (index < comparison->count) {
        const struct sw__result *result = &comparison->results[index];
        const sw_compared *compared = &result->compared;
        if (compared->verdict == SW_VERDICT_INCOMPARABLE) {
            say(&sentence, "not comparable: %s", compared->why);
            if (!isnan(compared->speedup)) {
                say_times(&sentence, comparison, compared);
            }
        } else if (compared->verdict == SW_VERDICT_SAME) {
            say_same(&sentence, compared, comparison->threshold);
            say_times(&sentence, comparison, compared);
            say_median(&sentence, compared);
        } else {
            say_ratio(&sentence, compared->speedup, compared->low, compared->high,
                      compared->tested);
            say_times(&sentence, comparison, compared);
            say_cause(&sentence, result);
        }
    }
    if (size > 0) {
        const size_t length = sentence.used < size ? sentence.used : size - 1;
        memcpy(out, sentence.text, length);
        out[length] = '\0';
    }
    return sentence.used;
}
