/* Tensors that are made of lists. */
#include "analyze/source_lists.h"

#include <string.h>

#include "analyze/source_loops.h"
#include "analyze/source_names.h"

static bool begins_with(const char *at, const char *end, const char *word)
{
    const size_t size = strlen(word);
    return (size_t)(end - at) >= size && memcmp(at, word, size) == 0;
}

/* Whether a line makes `name` a list, or puts something into it. */
static bool fills(const struct sw__source_line *at, const char *name, size_t size)
{
    static const char *const ways[] = {" = [", " = list(", ".append(", ": list"};
    if (at->length <= size || memcmp(at->text, name, size) != 0) {
        return false;
    }
    const char *end = at->text + at->length;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (begins_with(at->text + size, end, ways[i])) {
            return true;
        }
    }
    return false;
}

static bool is_list(const char *text, size_t length, uint32_t first, uint32_t line,
                    const char *name, size_t size)
{
    struct sw__source_line at;
    bool filled = false;
    while (!filled && first < line && sw__source_line_get(text, length, first, &at)) {
        filled = fills(&at, name, size);
        first++;
    }
    return filled;
}

/* Numbers that are written out are few: `torch.tensor([0.5, 0.5])`. */
static bool is_gathered(const char *at, const char *end)
{
    return memmem(at, (size_t)(end - at), " for ", 5) != NULL;
}

bool sw__source_tensor_of_list(const char *text, size_t length, uint32_t first,
                               uint32_t line)
{
    static const char *const calls[] = {"tensor(", "Tensor("};
    const char *begin;
    const char *end;
    if (!sw__source_statement(text, length, line, &begin, &end)) {
        return false;
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const char *at = begin;
        while ((at = memmem(at, (size_t)(end - at), calls[i], strlen(calls[i]))) !=
               NULL) {
            at += strlen(calls[i]);
            while (at < end && (*at == ' ' || *at == '\n')) {
                at++;
            }
            size_t size = 0;
            while (at + size < end && sw__source_in_name(at[size])) {
                size++;
            }
            if (begins_with(at, end, "[")
                    ? is_gathered(at, end)
                    : begins_with(at, end, "list(") ||
                          (size > 0 && is_list(text, length, first, line, at, size))) {
                return true;
            }
        }
    }
    return false;
}
