/* What else differs between two runs: machines, versions, settings, programs. */
#include <string.h>

#include "analyze/compare.h"

static int note_change(sw__arena *arena, struct sw__compare_notes *notes,
                       const char *what, const char *before, const char *after)
{
    if (!before || !after || strcmp(before, after) == 0) {
        return SW_OK;
    }
    return sw__compare_note(arena, notes, "%s: %s before, %s now.", what, before, after);
}

static const char *fact_of(const sw_compare_input *input, const char *key)
{
    for (size_t i = 0; i < input->fact_count; i++) {
        if (strcmp(input->facts[i].key, key) == 0) {
            return input->facts[i].value;
        }
    }
    return NULL;
}

/* A profile in one of them only. */
static int note_profile(sw__arena *arena, struct sw__compare_notes *notes,
                        const char *what, const sw_compare_input *before,
                        const sw_compare_input *after)
{
    const char *was = fact_of(before, what);
    const char *is = fact_of(after, what);
    if (!was || !is || strcmp(was, is) == 0) {
        return SW_OK;
    }
    return sw__compare_note(
        arena, notes, "A %s was taken in %s and not in %s, which makes that run slower.",
        what, strcmp(is, "on") == 0 ? after->side.path : before->side.path,
        strcmp(is, "on") == 0 ? before->side.path : after->side.path);
}

int sw__compare_facts(sw__arena *arena, struct sw__compare_notes *notes,
                      const sw_compare_input *before, const sw_compare_input *after)
{
    static const char *const profiles[] = {"function profile", "line profile"};
    int error = note_change(arena, notes, "Machine", before->side.host, after->side.host);
    error = error ? error
                  : note_change(arena, notes, "Python", before->side.python,
                                after->side.python);
    for (size_t i = 0; i < before->fact_count && !error; i++) {
        const struct sw__compare_fact *fact = &before->facts[i];
        if (strcmp(fact->key, profiles[0]) != 0 && strcmp(fact->key, profiles[1]) != 0) {
            error = note_change(arena, notes, fact->key, fact->value,
                                fact_of(after, fact->key));
        }
    }
    for (size_t i = 0; i < 2 && !error; i++) {
        error = note_profile(arena, notes, profiles[i], before, after);
    }
    return error;
}

/* --- programs --- */

/* The next word of a command line, without the quotes that a shell would need. Returns where the rest begins. */
static const char *next_word(const char *at, char *out, size_t size)
{
    size_t used = 0;
    bool quoted = false;
    at += strspn(at, " ");
    for (; *at && (quoted || *at != ' '); at++) {
        if (*at == '\'') {
            quoted = !quoted;
        } else if (used + 1 < size) {
            out[used++] = *at;
        }
    }
    out[used] = '\0';
    return at;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    return length > strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

bool sw__compare_program(const char *command, char *out, size_t size)
{
    char first[512] = "";
    char word[512];
    bool module = false;
    out[0] = '\0';
    for (const char *at = command ? command : ""; *at;) {
        at = next_word(at, word, sizeof word);
        if (module || ends_with(word, ".py")) {
            strncat(out, last_part(word), size - 1);
            return true;
        }
        if (first[0] == '\0') {
            memcpy(first, word, sizeof first);
        }
        module = strcmp(word, "-m") == 0 && strncmp(last_part(first), "python", 6) == 0;
        if (strcmp(word, "-c") == 0) {
            return false; /* code has no name */
        }
    }
    if (strncmp(last_part(first), "python", 6) != 0) {
        strncat(out, last_part(first), size - 1);
    }
    return out[0] != '\0';
}
