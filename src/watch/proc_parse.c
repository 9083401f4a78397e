#include "watch/proc_parse.h"

#include <math.h>
#include <string.h>

bool sw__proc_number(const char **at, uint64_t *out)
{
    const char *text = *at;
    uint64_t number = 0;
    while (*text == ' ' || *text == '\t') {
        text++;
    }
    if (*text < '0' || *text > '9') {
        return false;
    }
    for (; *text >= '0' && *text <= '9'; text++) {
        const uint64_t digit = (uint64_t)(*text - '0');
        if (number > (UINT64_MAX - 1 - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *out = number;
    *at = text;
    return true;
}

const char *sw__proc_next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end && end[1] ? end + 1 : NULL;
}

uint64_t sw__proc_field(const char *text, const char *key)
{
    const size_t length = strlen(key);
    for (const char *line = text; line; line = sw__proc_next_line(line)) {
        if (strncmp(line, key, length) == 0) {
            const char *at = line + length;
            uint64_t number;
            const bool apart = *at == ' ' || *at == '\t' || key[length - 1] == ':' ||
                               key[length - 1] == '=';
            return apart && sw__proc_number(&at, &number) ? number : SW__UNKNOWN;
        }
    }
    return SW__UNKNOWN;
}

uint64_t sw__proc_nth(const char *text, unsigned index)
{
    uint64_t number = SW__UNKNOWN;
    for (unsigned i = 0; i <= index; i++) {
        if (!sw__proc_number(&text, &number)) {
            return SW__UNKNOWN;
        }
    }
    return number;
}

double sw__proc_value(uint64_t number, double scale)
{
    return number == SW__UNKNOWN ? NAN : (double)number * scale;
}
