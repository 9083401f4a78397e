/* The family of a name: what is left of it when its numbers are set aside. Names that a
 * program builds from counters ("epoch_17") are folded into it when there are too many of
 * them. */
#include <stdbool.h>

#include "base/intern.h"

size_t sw__name_family(const char *bytes, size_t length, char *out)
{
    size_t used = 0;
    bool in_number = false;
    bool replaced = false;
    for (size_t i = 0; i < length; i++) {
        bool digit = bytes[i] >= '0' && bytes[i] <= '9';
        if (!digit) {
            out[used++] = bytes[i];
        } else if (!in_number) {
            out[used++] = '*';
            replaced = true;
        }
        in_number = digit;
    }
    return replaced ? used : 0;
}
