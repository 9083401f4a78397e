/* Numbers as people read them. All digits are made from integers: printf would write the
 * decimal comma of whatever locale the program has chosen. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/write.h>

/* Three significant digits of 0 ≤ value < 1000, rounded to the nearest. */
static void three_digits(char out[8], double value)
{
    if (value < 9.995) {
        unsigned hundredths = (unsigned)(value * 100 + 0.5);
        snprintf(out, 8, "%u.%02u", hundredths / 100 % 10, hundredths % 100);
    } else if (value < 99.95) {
        unsigned tenths = (unsigned)(value * 10 + 0.5);
        snprintf(out, 8, "%u.%u", tenths / 10 % 100, tenths % 10);
    } else {
        snprintf(out, 8, "%u", (unsigned)(value + 0.5) % 1000);
    }
}

/* From a minute on: two units, the second with two digits. */
static void long_duration(char out[24], const char *sign, double seconds)
{
    double rounded = floor(seconds + 0.5);
    if (rounded < 3600) {
        unsigned whole = (unsigned)rounded;
        snprintf(out, 24, "%s%u min %02u s", sign, whole / 60, whole % 60);
        return;
    }
    double minutes = floor(seconds / 60 + 0.5);
    if (minutes < 100 * 60) {
        unsigned whole = (unsigned)minutes;
        snprintf(out, 24, "%s%u h %02u min", sign, whole / 60, whole % 60);
        return;
    }
    double hours = floor(seconds / 3600 + 0.5);
    if (hours < 10000.0 * 24) {
        unsigned whole = (unsigned)hours;
        snprintf(out, 24, "%s%u d %02u h", sign, whole / 24, whole % 24);
        return;
    }
    snprintf(out, 24, *sign ? "< -9999 d" : "> 9999 d");
}

void sw_text_duration(char out[24], double nanoseconds, bool ascii)
{
    static const struct {
        double ns;
        const char *name;
        const char *ascii_name;
    } units[] = {{1, "ns", "ns"}, {1e3, "µs", "us"}, {1e6, "ms", "ms"}, {1e9, "s", "s"}};
    if (isnan(nanoseconds)) {
        snprintf(out, 24, "n/a");
        return;
    }
    const char *sign = nanoseconds < 0 ? "-" : "";
    double size = fabs(nanoseconds);
    char digits[8];
    for (size_t i = 0; i < 4; i++) {
        double value = size / units[i].ns;
        if (value >= (i < 3 ? 999.5 : 59.95)) {
            continue;
        }
        if (i == 0 && value == floor(value)) {
            snprintf(digits, sizeof digits, "%u",
                     (unsigned)value); /* a count, not measured */
        } else {
            three_digits(digits, value);
        }
        snprintf(out, 24, "%s%s %s", sign, digits,
                 ascii ? units[i].ascii_name : units[i].name);
        return;
    }
    long_duration(out, sign, size / 1e9);
}

void sw_text_count(char out[32], uint64_t value)
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, value);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) {
            out[used++] = ',';
        }
        out[used++] = digits[i];
    }
    out[used] = '\0';
}

void sw_text_bytes(char out[24], uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out, 24, "%u B", (unsigned)bytes);
        return;
    }
    for (unsigned i = 0;; i++) {
        unsigned shift = 10 * (i + 1);
        uint64_t unit = (uint64_t)1 << shift;
        uint64_t whole = bytes >> shift;
        uint64_t rest = bytes & (unit - 1);
        /* rest < 2^60, so ten times it fits. */
        uint64_t tenths = whole * 10 + ((rest * 10 + unit / 2) >> shift);
        uint64_t rounded = whole + (rest >= unit / 2);
        if (i < 5 && rounded >= 1024) {
            continue;
        }
        if (rest == 0 || tenths >= 1000) {
            snprintf(out, 24, "%u %s", (unsigned)(rest == 0 ? whole : rounded), units[i]);
        } else {
            snprintf(out, 24, "%u.%u %s", (unsigned)(tenths / 10),
                     (unsigned)(tenths % 10), units[i]);
        }
        return;
    }
}
