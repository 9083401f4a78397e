/* Where values pile up in a loop. */
#include "analyze/source_keeps.h"

#include <string.h>

#include "analyze/source_loops.h"
#include "analyze/source_names.h"

/* Longer loops are looked at so far. */
enum { LINES_MOST = 400, NAME_MOST = 64 };

typedef struct sw__source_line line;

static const char *find(const char *text, size_t length, const char *word)
{
    return memmem(text, length, word, strlen(word));
}

static bool holds(const line *at, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (find(at->text, at->length, words[i])) {
            return true;
        }
    }
    return false;
}
#define HOLDS(at, list) holds(at, list, sizeof list / sizeof list[0])

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || (unsigned char)c >= 0x80;
}

/* The name, with attributes, that the line begins with. */
static size_t name_length(const line *at)
{
    size_t length = 0;
    while (length < at->length && in_name(at->text[length])) {
        length++;
    }
    return length;
}

static bool is_code(const line *at)
{
    return at->length > 0 && at->text[0] != '#' && at->text[0] != '\r';
}

/* Whether the body makes `name` anew: "name = …". */
static bool made_inside(const char *text, size_t length, uint32_t loop, size_t indent,
                        const char *name, size_t name_size)
{
    line at;
    for (uint32_t i = loop + 1;
         i < loop + LINES_MOST && sw__source_line_get(text, length, i, &at); i++) {
        if (!is_code(&at)) {
            continue;
        }
        if (at.indent <= indent) {
            return false;
        }
        if (at.length > name_size + 2 && memcmp(at.text, name, name_size) == 0 &&
            !in_name(at.text[name_size])) {
            const char *rest = at.text + name_size;
            while (*rest == ' ') {
                rest++;
            }
            if (rest[0] == '=' && rest[1] != '=') {
                return true;
            }
        }
    }
    return false;
}

/* How much a statement looks as if it kept something; 0: not at all. `*name`: how long the name of what grows is. */
static int keeps(const line *at, size_t *name, bool *sums)
{
    static const char *const plain[] = {
        ".item()", ".detach()", "float(", "int(",         ".numpy()",
        "len(",    ".tolist()", ".size(", "perf_counter", "time()"};
    static const char *const likely[] = {"loss",  "out",  "pred",    "logit", "hidden",
                                         "batch", "grad", "feature", "embed"};
    static const struct {
        const char *call;
        int score;
    } calls[] = {{".append(", 4}, {".extend(", 4}, {".appendleft(", 4},
                 {".insert(", 3}, {".add(", 3},    {".put(", 2},
                 {".push(", 3},   {".update(", 2}, {".record(", 2},
                 {".store(", 2},  {".log(", 1},    {".setdefault(", 2}};
    int score = 0;
    *sums = false;
    const size_t word = name_length(at);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const char *call = find(at->text, at->length, calls[i].call);
        /* The name is all that stands before the call, or an element of it. */
        if (call && word > 0 &&
            (call - at->text < (ptrdiff_t)word || at->text[word] == '[') &&
            calls[i].score > score) {
            score = calls[i].score;
            *name = call - at->text < (ptrdiff_t)word ? (size_t)(call - at->text) : word;
        }
    }
    if (score == 0 && word > 0 && word + 4 < at->length) {
        const char *rest = at->text + word;
        const char *end = at->text + at->length;
        if (memcmp(rest, " += ", 4) == 0 && !(rest[4] >= '0' && rest[4] <= '9')) {
            score = 3;
            *sums = true;
            *name = word;
        } else if (*rest == '[' && find(rest, (size_t)(end - rest), "] = ")) {
            score = 2;
            *name = word;
        }
    }
    if (score == 0 || HOLDS(at, plain)) {
        return 0;
    }
    return score + (HOLDS(at, likely) ? 2 : 0);
}

struct sw__source_keep sw__source_keeps(const char *text, size_t length, uint32_t loop)
{
    struct sw__source_keep best = {0};
    int most = 0;
    line head;
    line at;
    if (loop == 0 || !sw__source_line_get(text, length, loop, &head)) {
        return best;
    }
    for (uint32_t i = loop + 1;
         i < loop + LINES_MOST && sw__source_line_get(text, length, i, &at); i++) {
        if (!is_code(&at)) {
            continue;
        }
        if (at.indent <= head.indent) {
            break;
        }
        size_t name = 0;
        bool sums = false;
        const int score = keeps(&at, &name, &sums);
        if (score > most && name < NAME_MOST &&
            !made_inside(text, length, loop, head.indent, at.text, name)) {
            most = score;
            while (at.length > 0 &&
                   (at.text[at.length - 1] == '\r' || at.text[at.length - 1] == ' ')) {
                at.length--;
            }
            best = (struct sw__source_keep){i, at.text, at.length, sums, false};
        }
    }
    return best;
}

/* Whether `name` stands in a text by itself. */
static bool names(const char *at, const char *end, const char *name, size_t size)
{
    while ((at = memmem(at, (size_t)(end - at), name, size)) != NULL) {
        if (!in_name(at[-1]) && (at + size == end || !in_name(at[size]))) {
            return true; /* a value never begins the text */
        }
        at += size;
    }
    return false;
}

/* Where the value of "name = …" begins, and how long the name is; NULL: it is another statement. */
static const char *assigned(const char *begin, const char *end, size_t *name)
{
    bool adds;
    const char *value = sw__source_value(begin, end, &adds);
    *name = 0;
    while (begin + *name < end && in_name(begin[*name])) {
        ++*name;
    }
    const char *after = begin + *name;
    while (after < end && *after == ' ') {
        after++;
    }
    /* Else several names, or a part of one. */
    return value && !adds && *name > 0 && after + 1 == value ? value : NULL;
}

/* Whether a value is "…cat([name, …". */
static bool joins(const char *value, const char *end, const char *name, size_t size)
{
    static const char *const ways[] = {"cat(",    "concat(", "concatenate(",
                                       "vstack(", "hstack(", "append("};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *call = find(value, (size_t)(end - value), ways[i]);
        if (call && names(call + strlen(ways[i]), end, name, size)) {
            return true;
        }
    }
    return false;
}

/* Whether a value may be all of `name`: it is named, and not only to take a part of it. */
static bool takes_all(const char *value, const char *end, const char *name, size_t size)
{
    while ((value = memmem(value, (size_t)(end - value), name, size)) != NULL) {
        const char *after = value + size;
        if (!in_name(value[-1]) &&
            (after == end || (!in_name(*after) && *after != '['))) {
            return true;
        }
        value = after;
    }
    return false;
}

/* The lines of a function, or of a module. */
struct body {
    const char *text;
    size_t length, indent;
    uint32_t end;
    bool module;
};

/* The next statement after line `*number`, which it moves there; false: the function ends. */
static bool next_statement(const struct body *of, uint32_t *number, const char **begin,
                           const char **end)
{
    line at;
    while (++*number < of->end &&
           sw__source_line_get(of->text, of->length, *number, &at)) {
        if (!is_code(&at)) {
            continue;
        }
        if (!of->module && at.indent <= of->indent && at.text[0] != ')') {
            return false;
        }
        if (sw__source_statement(of->text, of->length, *number, begin, end)) {
            return true;
        }
    }
    return false;
}

/* Whether "name = …cat([self.keys, …" is followed by "self.keys = name", by way of which it is kept. */
static bool kept_later(const struct body *of, uint32_t number, const char *name,
                       size_t size, const char *value, const char *end)
{
    const char *begin;
    const char *stop;
    while (next_statement(of, &number, &begin, &stop)) {
        size_t kept;
        const char *from = assigned(begin, stop, &kept);
        if (from && memchr(begin, '.', kept) && joins(value, end, begin, kept) &&
            takes_all(from, stop, name, size)) {
            return true;
        }
    }
    return false;
}

static bool follows(const char *at, const char *end, const char *word)
{
    const size_t size = strlen(word);
    return (size_t)(end - at) >= size && memcmp(at, word, size) == 0;
}

/* Whether `=` or an annotation follows a name: it is made there. */
static bool is_made(const char *at, const char *end)
{
    while (at < end && *at == ' ') {
        at++;
    }
    return at < end && (*at == ':' || (*at == '=' && !follows(at, end, "==")));
}

/* Whether line `number` stands below an `if` that does not ask for a length: where that holds, it would not get longer and longer. */
static bool is_optional(const char *text, size_t length, uint32_t number, size_t indent)
{
    line at;
    while (number-- > 1 && sw__source_line_get(text, length, number, &at)) {
        if (is_code(&at) && at.indent < indent) {
            return sw__source_starts(&at, "if ") && !find(at.text, at.length, "len(") &&
                   !find(at.text, at.length, "size") && !find(at.text, at.length, ">");
        }
    }
    return false;
}

/* Whether a file puts something into `name` over and over, and takes nothing out, or only on a condition: it makes it once, outside of
 * where it is used (at `indent`), if it is no attribute. */
static bool only_grows(const char *text, size_t length, const char *name, size_t size,
                       size_t indent)
{
    static const char *const more[] = {".append(", ".extend(", ".appendleft("};
    static const char *const less[] = {".clear(", ".pop(", ".popleft(", ".remove(", "[:"};
    const bool attribute = memchr(name, '.', size) != NULL;
    bool grows = false;
    unsigned made = 0;
    line at;
    for (uint32_t i = 1; sw__source_line_get(text, length, i, &at); i++) {
        const char *stop = at.text + at.length;
        const char *from = at.text;
        while (is_code(&at) &&
               (from = memmem(from, (size_t)(stop - from), name, size)) != NULL) {
            const bool begins = from == at.text;
            const bool whole = begins || !in_name(from[-1]);
            bool shrinks = whole && follows(at.text, stop, "del ");
            from += size;
            for (size_t k = 0; whole && k < sizeof more / sizeof more[0]; k++) {
                grows |= follows(from, stop, more[k]);
            }
            for (size_t k = 0; whole && k < sizeof less / sizeof less[0]; k++) {
                shrinks |= follows(from, stop, less[k]);
            }
            const bool makes = begins && is_made(from, stop);
            if (attribute && (shrinks || makes) &&
                is_optional(text, length, i, at.indent)) {
                continue;
            }
            if (shrinks || (makes && !attribute && at.indent >= indent)) {
                return false; /* … or it is another one each time */
            }
            made += makes;
        }
    }
    return grows && made <= 1;
}

/* Whether a statement makes one tensor or array of all that is in a list which grows: "torch.cat(list(self.keys))". */
static bool gathers(const char *text, size_t length, const line *at, const char *begin,
                    const char *end, bool plain)
{
    static const char *const ways[] = {"cat(",    "concat(", "concatenate(", "stack(",
                                       "vstack(", "hstack(", "array("};
    static const char *const lists[] = {"list(", "tuple(", "[*"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *call = find(begin, (size_t)(end - begin), ways[i]);
        if (!call || (call > begin && call[-1] != '.' && in_name(call[-1]))) {
            continue;
        }
        const char *name = call + strlen(ways[i]);
        for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
            name += follows(name, end, lists[k]) ? strlen(lists[k]) : 0;
        }
        size_t size = 0;
        while (name + size < end && in_name(name[size])) {
            size++;
        }
        const char after = name + size < end ? name[size] : 0;
        if (size > 0 && (after == ')' || after == ',' || after == ']') &&
            (plain || memchr(name, '.', size)) &&
            only_grows(text, length, name, size, at->indent)) {
            return true;
        }
    }
    return false;
}

/* Whether the statement at line `number` puts something at the end of all that is there. */
static bool piles(const struct body *of, uint32_t number, const char *begin,
                  const char *end, bool plain)
{
    size_t name;
    const char *value = assigned(begin, end, &name);
    return value &&
           (((plain || memchr(begin, '.', name)) && joins(value, end, begin, name)) ||
            kept_later(of, number, begin, name, value, end));
}

struct sw__source_keep sw__source_piles(const char *text, size_t length, uint32_t first,
                                        bool plain)
{
    line head;
    line at;
    uint32_t i = first;
    while (sw__source_line_get(text, length, i, &head) && head.length > 0 &&
           head.text[0] == '@') {
        i++;
    }
    if (!sw__source_line_get(text, length, i, &head)) {
        return (struct sw__source_keep){0};
    }
    /* A module has no head, and ends with the file. */
    const bool module =
        !sw__source_starts(&head, "def ") && !sw__source_starts(&head, "async def ");
    i = module ? 0 : i;
    const struct body body = {text, length, head.indent, i + LINES_MOST, module};
    const char *begin;
    const char *stop;
    while (next_statement(&body, &i, &begin, &stop)) {
        (void)sw__source_line_get(text, length, i, &at);
        const bool gather = gathers(text, length, &at, begin, stop, plain);
        if (gather || piles(&body, i, begin, stop, plain)) {
            while (at.length > 0 &&
                   (at.text[at.length - 1] == '\r' || at.text[at.length - 1] == ' ')) {
                at.length--;
            }
            return (struct sw__source_keep){i, at.text, at.length, false, gather};
        }
    }
    return (struct sw__source_keep){0};
}
