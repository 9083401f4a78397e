#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/record.h>

#include "cli/cli.h"
#include "cli/run_origin.h"

/* The word of the command in which `operand` lies; flags may be before it, as in -mMODULE. */
static size_t word_of(char *const *command, const char *operand)
{
    for (size_t i = 0; command[i]; i++) {
        if (operand >= command[i] && operand <= command[i] + strlen(command[i])) {
            return i;
        }
    }
    return 0;
}

static bool is_module(char *const *command, const char *operand, size_t word)
{
    return operand != command[word] || (word > 0 && strcmp(command[word - 1], "-m") == 0);
}

void run_origin_find(struct run_origin *origin, char *const *command, const char *operand,
                     const sw_given *given)
{
    *origin = (struct run_origin){.word = word_of(command, operand), .given = given};
    if (!getcwd(origin->folder, sizeof origin->folder)) {
        origin->folder[0] = '\0';
    }
    const bool named = is_module(command, operand, origin->word) ||
                       (origin->word == 0 && !strchr(operand, '/'));
    if (named || !realpath(operand, origin->program)) {
        snprintf(origin->program, sizeof origin->program, "%s", operand);
    }
    origin->in_git = sw_git_read(origin->program[0] == '/' ? origin->program : ".",
                                 &origin->git) == SW_OK;
}

static void put_text(sw_writer *w, const char *key, const char *text)
{
    sw_json_key(w, key);
    sw_json_string(w, *text ? text : NULL);
}

static void put_git(sw_writer *w, const struct run_origin *origin)
{
    sw_json_key(w, "git");
    if (!origin->in_git) {
        sw_json_null(w);
        return;
    }
    sw_json_object_begin(w);
    put_text(w, "commit", origin->git.commit);
    put_text(w, "branch", origin->git.branch);
    sw_json_key(w, "dirty");
    if (origin->git.dirty < 0) {
        sw_json_null(w);
    } else {
        sw_json_bool(w, origin->git.dirty != 0);
    }
    sw_json_object_end(w);
}

/* "true" in a file is the "on" of the table. */
static bool differs(const sw_option *option, const char *text)
{
    return strcmp(option->type, "bool") == 0
               ? cli_is_off(text) != cli_is_off(option->default_value)
               : strcmp(text, option->default_value) != 0;
}

/* What somebody has said, and is not what would have been anyway. Name and directory of the run stand elsewhere. */
static void put_config(sw_writer *w, const sw_given *given)
{
    static const char *const elsewhere[] = {"enabled", "name", "out"};
    size_t count;
    const sw_option *known = sw_options(&count);
    sw_json_key(w, "config");
    sw_json_object_begin(w);
    for (size_t i = 0; i < count; i++) {
        sw_given_value value = {.text = ""};
        bool shown = sw_given_get(given, known[i].name, &value) == SW_OK &&
                     value.source != SW_SOURCE_DEFAULT && differs(&known[i], value.text);
        for (size_t k = 0; k < 3; k++) {
            shown = shown && strcmp(known[i].name, elsewhere[k]) != 0;
        }
        if (shown) {
            sw_json_key(w, known[i].name);
            sw_json_string(w, value.text);
        }
    }
    sw_json_object_end(w);
}

void run_origin_write(sw_writer *writer, const struct run_origin *origin)
{
    sw_writer *w = writer;
    sw_json_key(w, "program");
    sw_json_object_begin(w);
    put_text(w, "name", origin->program);
    sw_json_key(w, "word");
    sw_json_uint(w, origin->word);
    sw_json_object_end(w);
    put_text(w, "folder", origin->folder);
    put_git(w, origin);
    put_config(w, origin->given);
}
