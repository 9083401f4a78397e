/* Statements that pick rows of arrays. */
#include "analyze/source_gathers.h"

#include <string.h>

#include "analyze/source_names.h"

bool sw__source_only_gathers(const char *text, size_t length, uint32_t number)
{
    const char *begin, *end;
    bool adds;
    if (!sw__source_statement(text, length, number, &begin, &end)) {
        return false;
    }
    const char *value = sw__source_value(begin, end, &adds);
    if (!value || adds) {
        return false;
    }
    bool indexes = false;
    for (const char *at = value; at < end && *at != '#'; at++) {
        indexes |= *at == '[' && at > value && sw__source_in_name(at[-1]);
        if (!sw__source_in_name(*at) && !strchr(" .,:[]\n", *at)) {
            return false;
        }
    }
    return indexes;
}
