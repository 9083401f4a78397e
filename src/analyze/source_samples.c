/* Data sets and models in the source of a program. */
#include "analyze/source_samples.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "analyze/source_chance.h"
#include "analyze/source_loops.h"
#include "analyze/source_names.h"

/* Longer files and classes are not understood. */
enum { FILE_MOST = 5000, CLASS_MOST = 400 };

typedef struct sw__source_line line;

static bool has(const line *at, const char *word)
{
    return memmem(at->text, at->length, word, strlen(word)) != NULL;
}

/* Whether the function at `first` gives something else at times, or nobody can tell. */
static bool may_differ(const char *text, size_t length, uint32_t first, unsigned depth)
{
    static const char *const known[] = {"int",  "float", "len",   "str",   "tuple",
                                        "list", "dict",  "range", "slice", "min",
                                        "max",  "abs",   "sum",   "bool"};
    line head, at;
    uint32_t last;
    struct sw__names called = {.count = 0};
    if (depth > 3 || sw__source_by_chance(text, length, first) ||
        !sw__source_head(text, length, first, &head, &last)) {
        return true;
    }
    for (uint32_t i = last + 1;
         i < last + CLASS_MOST && sw__source_line_get(text, length, i, &at); i++) {
        if (!sw__source_is_code(&at)) {
            continue;
        }
        if (at.indent <= head.indent) {
            break;
        }
        /* What is handed to the data set may draw, and so may what it keeps to ask. */
        if (has(&at, "transform") || has(&at, "super(") || has(&at, "next(")) {
            return true;
        }
        struct sw__names used = {.count = 0}, impure = {.count = 0};
        sw__names_scan(at.text, at.text + at.length, &used, &called, &impure);
        if (impure.count > 0) {
            return true;
        }
    }
    for (size_t i = 0; i < called.count && !called.full; i++) {
        const struct sw__name *name = &called.list[i];
        if (SW__NAME_IS_ONE_OF(name, known)) {
            continue;
        }
        const uint32_t here = sw__source_find(text, length, 1, FILE_MOST, "def ",
                                              name->text, name->length, -1, &at);
        if (here == 0 || may_differ(text, length, here, depth + 1)) {
            return true;
        }
    }
    return called.full;
}

bool sw__source_same_samples(const char *text, size_t length, const char *type)
{
    static const char getitem[] = "__getitem__";
    line at;
    const uint32_t here = sw__source_find(text, length, 1, FILE_MOST, "class ", type,
                                          strlen(type), -1, &at);
    if (here == 0) {
        return false;
    }
    const uint32_t first =
        sw__source_find(text, length, here + 1, CLASS_MOST, "def ", getitem,
                        strlen(getitem), (long)at.indent, &at);
    return first > 0 && !may_differ(text, length, first, 0);
}

/* The average of a model's parameters goes by this name. */
static bool names_average(const line *at)
{
    for (size_t i = 0; i + 3 <= at->length; i++) {
        const char before = i > 0 ? at->text[i - 1] : ' ';
        const char after = i + 3 < at->length ? at->text[i + 3] : ' ';
        if (strncasecmp(at->text + i, "ema", 3) == 0 && !isalnum((unsigned char)before) &&
            !isalnum((unsigned char)after)) {
            return true;
        }
    }
    return false;
}

bool sw__source_moves_parameters(const char *text, size_t length)
{
    static const char *const words[] = {".copy_(", ".lerp_(", "AveragedModel",
                                        "update_parameters(", "_foreach_lerp"};
    const char *const end = text + length;
    for (const char *begin = text; begin < end;) {
        const char *stop = memchr(begin, '\n', (size_t)(end - begin));
        stop = stop ? stop : end;
        const line at = {.text = begin, .length = (size_t)(stop - begin)};
        bool moves = names_average(&at) ||
                     (has(&at, "load_state_dict(") && has(&at, "state_dict()"));
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            moves = moves || has(&at, words[k]);
        }
        if (moves) {
            return true;
        }
        begin = stop + 1;
    }
    return false;
}

bool sw__source_evaluates(const char *text, size_t length)
{
    static const char *const words[] = {".eval()", ".train(False)", ".train(mode=False)"};
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
        if (memmem(text, length, words[k], strlen(words[k]))) {
            return true;
        }
    }
    return false;
}
