/* Loops in a program's own source. */
#include "analyze/source_loops.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool starts(const struct sw__source_line *line, const char *word)
{
    const size_t length = strlen(word);
    return line->length >= length && memcmp(line->text, word, length) == 0;
}

static bool holds(const struct sw__source_line *line, const char *word)
{
    const size_t length = strlen(word);
    for (size_t i = 0; i + length <= line->length; i++) {
        if (memcmp(line->text + i, word, length) == 0) {
            return true;
        }
    }
    return false;
}

bool sw__source_is_loop(const struct sw__source_line *line)
{
    return starts(line, "for ") || starts(line, "while ") || starts(line, "async for ");
}

bool sw__source_line_get(const char *text, size_t length, uint32_t number,
                         struct sw__source_line *out)
{
    const char *at = text;
    const char *const end = text + length;
    for (uint32_t i = 1; i < number && at; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    if (!at || at >= end) {
        return false;
    }
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    stop = stop ? stop : end;
    size_t indent = 0;
    while (at < stop && (*at == ' ' || *at == '\t')) {
        indent += *at == '\t' ? 8 : 1;
        at++;
    }
    *out = (struct sw__source_line){
        .text = at, .length = (size_t)(stop - at), .indent = indent};
    return true;
}

uint32_t sw__source_loop(const char *text, size_t length, uint32_t first, uint32_t line)
{
    struct sw__source_line here;
    if (line == 0 || !sw__source_line_get(text, length, line, &here)) {
        return 0;
    }
    if (sw__source_is_loop(&here) || (holds(&here, " for ") && holds(&here, " in "))) {
        return line;
    }
    return sw__source_loop_around(text, length, first, line);
}

uint32_t sw__source_loop_around(const char *text, size_t length, uint32_t first,
                                uint32_t line)
{
    struct sw__source_line here;
    if (line == 0 || !sw__source_line_get(text, length, line, &here)) {
        return 0;
    }
    size_t indent = here.indent;
    for (uint32_t at = line - 1; at > first && at > 0 && indent > 0; at--) {
        if (!sw__source_line_get(text, length, at, &here) || here.length == 0 ||
            here.indent >= indent || here.text[0] == '#' || here.text[0] == '\r') {
            continue;
        }
        if (sw__source_is_loop(&here)) {
            return at;
        }
        indent = here.indent;
    }
    return 0;
}

bool sw__source_yields(const char *text, size_t length, uint32_t loop)
{
    struct sw__source_line head, here;
    if (loop == 0 || !sw__source_line_get(text, length, loop, &head)) {
        return false;
    }
    for (uint32_t at = loop + 1; sw__source_line_get(text, length, at, &here); at++) {
        if (here.length == 0 || here.text[0] == '#' || here.text[0] == '\r') {
            continue;
        }
        if (here.indent <= head.indent) {
            return false;
        }
        if (starts(&here, "yield")) {
            return true;
        }
    }
    return false;
}

bool sw__source_returns(const char *text, size_t length, uint32_t first)
{
    struct sw__source_line head, here;
    uint32_t at = first;
    while (sw__source_line_get(text, length, at, &head) && head.length > 0 &&
           head.text[0] == '@') {
        at++;
    }
    if (!sw__source_line_get(text, length, at, &head) ||
        (!starts(&head, "def ") && !starts(&head, "async def "))) {
        return false;
    }
    size_t nested = SIZE_MAX; /* the indentation of a function inside, while in it */
    while (sw__source_line_get(text, length, ++at, &here)) {
        if (here.length == 0 || here.text[0] == '#' || here.text[0] == '\r') {
            continue;
        }
        if (here.indent <= head.indent && here.text[0] != ')') {
            return false;
        }
        if (nested != SIZE_MAX && here.indent > nested) {
            continue;
        }
        nested =
            starts(&here, "def ") || starts(&here, "async def ") ? here.indent : SIZE_MAX;
        if (starts(&here, "return ") && !starts(&here, "return None") &&
            !starts(&here, "return #")) {
            return true;
        }
    }
    return false;
}
