/* Numbers with units, and axes with ticks at round places. Digits are made from integers, for printf asks the locale. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/chart.h"

/* --- units --- */

/* What a unit can be shown in. */
struct measure {
    double size; /* in the unit that was given */
    const char *name;
};

/* How many seconds a unit of time has; 0: it is none. */
static double seconds_of(const char *unit)
{
    static const struct {
        const char *unit;
        double seconds;
    } known[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"µs", 1e-6}, {"ns", 1e-9}};
    for (size_t i = 0; unit && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].unit, unit) == 0) {
            return known[i].seconds;
        }
    }
    return 0;
}

static bool is_bytes(const char *unit)
{
    return unit && strcmp(unit, "B") == 0;
}

/* The measure in which `most` is a handy number. */
static struct measure measure_of(double most, const char *unit)
{
    static const struct measure times[] = {{3600, "h"},  {60, "min"},  {1, "s"},
                                           {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
    static const struct measure sizes[] = {
        {0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}};
    const double seconds = seconds_of(unit);
    most = fabs(most);
    if (seconds > 0) {
        for (size_t i = 0; i < 6; i++) {
            /* Up to a few minutes seconds are easier to read. */
            const double least = times[i].size > 1 ? 5 * times[i].size : times[i].size;
            if (most * seconds >= least * 0.9999 || i == 5) {
                return (struct measure){times[i].size / seconds, times[i].name};
            }
        }
    }
    for (size_t i = 0; is_bytes(unit) && i < 5; i++) {
        if (most >= sizes[i].size || i == 4) {
            return sizes[i];
        }
    }
    return (struct measure){1, unit ? unit : ""};
}

/* --- digits --- */

/* A number with so many digits after the point; with separators between thousands. */
static void fixed(char out[SW__VALUE], double value, int decimals)
{
    static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
    const double scaled = floor(fabs(value) * power[decimals] + 0.5);
    const uint64_t digits = scaled < 1e18 ? (uint64_t)scaled : 0;
    const uint64_t unit = (uint64_t)power[decimals];
    char whole[32];
    sw_text_count(whole, digits / unit);
    const char *sign = value < 0 && digits > 0 ? "-" : "";
    if (decimals == 0) {
        snprintf(out, SW__VALUE, "%s%s", sign, whole);
    } else {
        snprintf(out, SW__VALUE, "%s%s.%0*" PRIu64, sign, whole, decimals, digits % unit);
    }
}

/* Without zeros at the end of the fraction. */
static void trim(char *text)
{
    size_t end = strlen(text);
    if (strchr(text, '.')) {
        while (text[end - 1] == '0') {
            end--;
        }
        end -= text[end - 1] == '.';
        text[end] = '\0';
    }
}

/* Numbers that are too long to write out: "1.5e+20". */
static void powers(char out[SW__VALUE], double value)
{
    int exponent = (int)floor(log10(fabs(value)));
    double mantissa = value / pow(10, exponent / 2) / pow(10, exponent - exponent / 2);
    if (fabs(mantissa) >= 9.995) {
        mantissa /= 10;
        exponent++;
    }
    fixed(out, mantissa, 2);
    trim(out);
    const size_t length = strlen(out);
    snprintf(out + length, SW__VALUE - length, "e%+d", exponent);
}

/* Three significant digits, whole numbers whole. */
static void short_number(char out[SW__VALUE], double value)
{
    const double size = fabs(value);
    if (size == 0) {
        snprintf(out, SW__VALUE, "0");
    } else if (size >= 1e12 || size < 1e-4) {
        powers(out, value);
    } else if (size == floor(size) && size < 1e7) {
        fixed(out, value, 0);
    } else if (size >= 999.5) {
        fixed(out, value, 0);
    } else {
        fixed(out, value, size >= 99.95 ? 0 : 1 - (int)floor(log10(size)) + 1);
        trim(out);
    }
}

void sw__chart_value(char out[SW__VALUE], double value, const char *unit)
{
    const struct measure measure = measure_of(value, unit);
    char number[SW__VALUE];
    if (!sw__chart_is_good(value)) {
        snprintf(out, SW__VALUE, "no value");
        return;
    }
    short_number(number, value == 0 ? 0 : value / measure.size);
    snprintf(out, SW__VALUE, "%s%s%.20s", number, measure.name[0] ? " " : "",
             value == 0 && seconds_of(unit) > 0 ? "s" : measure.name);
}

void sw__chart_count(char out[SW__VALUE], size_t count)
{
    char number[32];
    sw_text_count(number, count);
    snprintf(out, SW__VALUE, "%s", number);
}

/* --- axes --- */

/* The smallest of 1, 2, 2.5 and 5 times a power of ten that is no smaller; of minutes also 15 and 30. */
static double round_step(double least, bool sixty)
{
    static const double steps[] = {1, 2, 2.5, 5, 10};
    static const double sixties[] = {10, 15, 20, 30, 60};
    if (sixty && least > 5 && least <= 60) {
        size_t i = 0;
        while (sixties[i] < least) {
            i++;
        }
        return sixties[i];
    }
    const double power = pow(10, floor(log10(least)));
    for (size_t i = 0; i < 5; i++) {
        if (steps[i] * power >= least * (1 - 1e-9)) {
            return steps[i] * power;
        }
    }
    return 10 * power;
}

/* Bytes step by powers of two, so that 512 and 1,024 are round. */
static double binary_step(double least)
{
    return exp2(ceil(log2(least) - 1e-9));
}

/* Digits after the point that a step needs. */
static int decimals_of(double step)
{
    for (int decimals = 0; decimals < 9; decimals++) {
        const double scaled = step * pow(10, decimals);
        if (fabs(scaled - floor(scaled + 0.5)) < 1e-6 * scaled) {
            return decimals;
        }
    }
    return 9;
}

static void tick_text(char out[SW__VALUE], double value, double step)
{
    if (fabs(value) < step / 1e6) {
        snprintf(out, SW__VALUE, "0");
    } else if (fabs(value) >= 1e9 || step < 1e-8) {
        short_number(out, value);
    } else {
        fixed(out, value, decimals_of(step));
    }
}

void sw__axis_linear(struct sw__axis *axis, double low, double high, const char *unit,
                     size_t most, bool whole)
{
    const double size = fmax(fabs(low), fabs(high));
    if (!(high - low >
          fmax(size * 1e-9,
               SW__CHART_SMALLEST))) { /* one value: some room on both sides */
        const double room = size > 1e-290 ? size * 0.1 : 1;
        low -= room;
        high += room;
    }
    *axis = (struct sw__axis){.low = low, .high = high};
    const struct measure measure = measure_of(fmax(fabs(low), fabs(high)), unit);
    snprintf(axis->unit, sizeof axis->unit, "%s", measure.name);
    most = most < 2 ? 2 : most > SW__TICKS - 1 ? SW__TICKS - 1 : most;
    const double range = (high - low) / measure.size;
    const bool sixty = strcmp(measure.name, "min") == 0 || strcmp(measure.name, "s") == 0;
    const double least = range / (double)most;
    /* Small parts of a measure are easier to read in tenths: 0.01 MiB, not 0.0078125. */
    const bool binary = is_bytes(unit) && binary_step(least) >= 0.25;
    double step = binary ? binary_step(least) : round_step(least, sixty);
    step = whole && step < 1 ? 1 : step;
    const double first = ceil(low / measure.size / step - 1e-9);
    for (size_t i = 0; i < SW__TICKS; i++) {
        const double value = (first + (double)i) * step;
        if (value * measure.size > high + range * measure.size * 1e-9) {
            break;
        }
        axis->tick[axis->count] = value * measure.size;
        tick_text(axis->text[axis->count++], value, step);
    }
}

void sw__axis_log(struct sw__axis *axis, double low, double high, const char *unit)
{
    static const double steps[] = {1, 2, 5};
    low = fmax(low, SW__CHART_SMALLEST); /* where all below it stands */
    high = fmax(high, SW__CHART_SMALLEST);
    if (!(high > low * (1 + 1e-9))) {
        low /= 2;
        high *= 2;
    }
    *axis = (struct sw__axis){.low = low, .high = high, .log = true};
    const int first = (int)floor(log10(low)), last = (int)floor(log10(high));
    /* Few decades have ticks between them; of many some are left out. */
    const int decades = last - first;
    const int every = decades / 8 + 1;
    for (int power = first; power <= last; power++) {
        for (size_t i = 0; i < (decades <= 2 ? 3u : 1u); i++) {
            const double value = steps[i] * pow(10, power);
            if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9) ||
                (power - first) % every != 0 || axis->count == SW__TICKS) {
                continue;
            }
            axis->tick[axis->count] = value;
            sw__chart_value(axis->text[axis->count++], value, unit);
        }
    }
}

double sw__axis_at(const struct sw__axis *axis, double value)
{
    double share;
    if (axis->log) {
        share = value > 0 ? log(value / axis->low) / log(axis->high / axis->low) : 0;
    } else {
        share = (value - axis->low) / (axis->high - axis->low);
    }
    return share > 0 ? fmin(share, 1) : 0;
}
