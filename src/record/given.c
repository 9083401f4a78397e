/* Gathers what command line, environment and configuration file say about the options. Nothing is applied here: each
 * value is checked, and kept as the text that it was. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "config/find.h"
#include "record/given.h"
#include "record/options.h"

#define PREFIX "STEPWATCH_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)
/* Enough to see what is wrong with a file. */
#define PROBLEMS_MOST 24

/* Variables that are no options: those that `stepwatch run` reads, or hands to its children. */
static const char *const internal[] = {"RUN_ID",  "SUPERVISOR", "PYTHON",
                                       "PACKAGE", "CONFIG",     "FROM_FILE"};

struct value {
    const char *text; /* NULL: nothing was said */
    const char *where;
    const char *problem;
    enum sw_source source;
    unsigned line; /* in the file; 0: not from one */
};

struct sw_given {
    sw__arena *arena; /* holds every text */
    const char *file; /* as it is shown; "" none */
    struct value values[SW__OPTIONS_MOST];
    const char *problems[PROBLEMS_MOST + 1];
    size_t problem_count;
    size_t more_problems;
    bool off; /* by STEPWATCH_ENABLED */
    /* What values are tried on, and the file while it is read: too large for the stack of any thread. */
    struct sw__settings scratch;
    struct sw__config_file source;
};

/* --- texts --- */

static const char *keep(sw_given *given, const char *text)
{
    const char *copy = sw__arena_copy(given->arena, text, strlen(text));
    return copy ? copy : "";
}

static const char *keep_format(sw_given *given, const char *format, ...) SW_PRINTF(2, 3);

/* A sentence, with bytes that could play tricks on a terminal shown as '?'. */
static const char *keep_format(sw_given *given, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *at = text; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7F) {
            *at = '?';
        }
    }
    return keep(given, text);
}

static void add_problem(sw_given *given, const char *sentence)
{
    if (given->problem_count < PROBLEMS_MOST) {
        given->problems[given->problem_count++] = sentence;
    } else {
        given->more_problems++;
    }
}

/* --- one value --- */

/* Takes a value that makes sense; one that does not leaves what was there. */
static int take(sw_given *given, int index, const char *text, enum sw_source source,
                const char *where, sw_error_info *why)
{
    struct value *value = &given->values[index];
    int result = sw__option_apply(&given->scratch, index, text, why);
    if (result == SW_OK) {
        value->text = keep(given, text);
        value->where = where;
        value->source = source;
        value->line = 0;
    }
    return result;
}

static const char *name_of(int index)
{
    return sw_options(NULL)[index].name;
}

/* --- environment --- */

static void note_unknown_variable(sw_given *given, const char *variable, size_t length)
{
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)(length - PREFIX_LENGTH),
             variable + PREFIX_LENGTH);
    const char *nearest = sw_option_nearest(key);
    char known[64];
    if (nearest) {
        sw__option_variable(nearest, known, sizeof known);
    }
    /* Not its value: nobody knows what someone else put there. */
    add_problem(given, keep_format(given, "%s%s is not a known setting%s%s%s", PREFIX,
                                   key, nearest ? "; did you mean " : " and is ignored",
                                   nearest ? known : "", nearest ? "?" : ""));
}

static bool is_known(const char *key, size_t length)
{
    for (size_t i = 0; i < SW__COUNTOF(internal); i++) {
        if (strlen(internal[i]) == length && memcmp(internal[i], key, length) == 0) {
            return true;
        }
    }
    size_t count;
    const sw_option *options = sw_options(&count);
    for (size_t i = 0; i < count; i++) {
        char variable[64];
        sw__option_variable(options[i].name, variable, sizeof variable);
        const char *known = variable + PREFIX_LENGTH;
        if (strlen(known) == length && memcmp(known, key, length) == 0) {
            return true;
        }
    }
    return false;
}

/* One problem for each variable that begins like ours and is none of ours: a misspelt setting
 * must not pass for one that was heard. */
static void note_strangers(sw_given *given)
{
    for (char **entry = environ; entry && *entry; entry++) {
        if (strncmp(*entry, PREFIX, PREFIX_LENGTH) != 0) {
            continue;
        }
        size_t length = strcspn(*entry, "=");
        if (length > PREFIX_LENGTH &&
            !is_known(*entry + PREFIX_LENGTH, length - PREFIX_LENGTH)) {
            note_unknown_variable(given, *entry, length);
        }
    }
}

/* The value of a variable, or NULL. An empty one says nothing, so that a script can take back a setting by clearing
 * it. A program with privileges that its caller lacks must not let that caller say where it writes: there the
 * environment is silent. */
static const char *variable_value(const char *variable)
{
    const char *value = secure_getenv(variable);
    return value && *value ? value : NULL;
}

static void gather_environment(sw_given *given)
{
    size_t count;
    const sw_option *options = sw_options(&count);
    for (size_t i = 0; i < count; i++) {
        char variable[64];
        sw_error_info why;
        sw__option_variable(options[i].name, variable, sizeof variable);
        const char *text = variable_value(variable);
        if (!text) {
            continue;
        }
        const char *where = keep(given, variable);
        if (take(given, (int)i, text, SW_SOURCE_ENVIRONMENT, where, &why) != SW_OK) {
            given->values[i].problem =
                keep_format(given, "%s is ignored: %s", variable, why.message);
            add_problem(given, given->values[i].problem);
        } else if (strcmp(options[i].name, "enabled") == 0) {
            given->off = !given->scratch.enabled;
        }
    }
    note_strangers(given);
}

/* --- a file, or what takes its place --- */

/* Values as they come, before all of one are there. */
struct gathering {
    sw_given *given;
    const char *shown;            /* name of the file */
    char refused[SW__CONFIG_KEY]; /* the last key that was complained of */
    struct {
        char *text; /* NULL: nothing was said */
        size_t length;
        unsigned line;
        bool parts; /* given as KEY.PART = VALUE */
    } raw[SW__OPTIONS_MOST];
};

static const char *place_of(const struct gathering *all, unsigned line)
{
    return line ? keep_format(all->given, "%.200s:%u", all->shown, line)
                : keep_format(all->given, "%.200s", all->shown);
}

static void complain(void *arg, unsigned line, const char *sentence)
{
    struct gathering *all = arg;
    add_problem(all->given,
                keep_format(all->given, "%s: %s", place_of(all, line), sentence));
}

static void complain_of(struct gathering *all, unsigned line, const char *format, ...)
    SW_PRINTF(3, 4);

static void complain_of(struct gathering *all, unsigned line, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    complain(all, line, sentence);
}

static void raw_add(struct gathering *all, int index, const char *text, size_t length)
{
    char *old = all->raw[index].text;
    size_t used = old ? all->raw[index].length : 0;
    char *grown = sw__realloc(old, used + length + 1, 1);
    if (!grown) {
        return;
    }
    memcpy(grown + used, text, length);
    grown[used + length] = '\0';
    all->raw[index].text = grown;
    all->raw[index].length = used + length;
}

/* A key that is none of ours, or cannot be given here; once for all that is below it. */
static void complain_of_key(struct gathering *all, const struct sw__config_entry *entry,
                            const char *key, const char *sentence)
{
    if (strcmp(all->refused, key) != 0) {
        snprintf(all->refused, sizeof all->refused, "%s", key);
        complain(all, entry->line, sentence);
    }
}

/* The option of a key, also of KEY.PART; -1 and a problem when there is none. */
static int option_of(struct gathering *all, const struct sw__config_entry *entry,
                     const char **part)
{
    char key[SW__CONFIG_KEY];
    char sentence[SW__CONFIG_KEY + 64];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(entry->key, "."), entry->key);
    int index = sw__option_find(key, strlen(key));
    const char *dot = strchr(entry->key, '.');
    *part = dot ? dot + 1 : NULL;
    if (index < 0) {
        sw_error_info why = {0};
        sw_option_check(key, "", &why);
        complain_of_key(all, entry, key, why.message);
        return -1;
    }
    if (sw_options(NULL)[index].flags & SW_OPTION_ENVIRONMENT) {
        snprintf(sentence, sizeof sentence, "%s can be given by its variable only", key);
        complain_of_key(all, entry, key, sentence);
        return -1;
    }
    if (dot && strcmp(key, "schedule") != 0) {
        snprintf(sentence, sizeof sentence, "%s takes a value, not a table", key);
        complain_of_key(all, entry, key, sentence);
        return -1;
    }
    return index;
}

static void take_entry(void *arg, const struct sw__config_entry *entry)
{
    struct gathering *all = arg;
    const char *part;
    int index = option_of(all, entry, &part);
    if (index < 0) {
        return;
    }
    bool again =
        all->raw[index].text && !entry->element && !(part && all->raw[index].parts);
    if (again && all->raw[index].line != entry->line) {
        complain_of(all, entry->line, "%s was given before; this one counts",
                    name_of(index));
    }
    if (again) {
        sw__free(all->raw[index].text);
        all->raw[index].text = NULL;
    }
    bool list = strcmp(sw_options(NULL)[index].type, "list") == 0;
    if (!list && !part && (entry->kind == SW__CONFIG_LIST || entry->element)) {
        if (!entry->element) {
            complain_of(all, entry->line, "%s takes one value, not a list",
                        name_of(index));
        }
        return;
    }
    if (entry->kind == SW__CONFIG_NULL) {
        return;
    }
    bool first = !all->raw[index].text;
    if (first) {
        all->raw[index].line = entry->line;
        all->raw[index].parts = part != NULL;
        raw_add(all, index, "", 0);
    }
    /* PART=VALUE,PART=VALUE, and a list as VALUE,VALUE. */
    size_t used = all->raw[index].length;
    bool begins = used == 0 || all->raw[index].text[used - 1] == '=';
    if (part && !entry->element) {
        if (used > 0) {
            raw_add(all, index, ",", 1);
        }
        raw_add(all, index, part, strlen(part));
        raw_add(all, index, "=", 1);
    } else if (entry->element && !begins) {
        raw_add(all, index, ",", 1);
    }
    if (entry->kind == SW__CONFIG_SCALAR) {
        raw_add(all, index, entry->value, strlen(entry->value));
    }
}

/* Checks what has come together, and takes it. */
static void settle(struct gathering *all)
{
    sw_given *given = all->given;
    for (int i = 0; i < SW__OPTIONS_MOST; i++) {
        sw_error_info why;
        const char *text = all->raw[i].text;
        unsigned line = all->raw[i].line;
        /* An empty text says nothing, as an empty variable does. */
        if (text && *text) {
            const char *where = place_of(all, line);
            if (take(given, i, text, SW_SOURCE_FILE, where, &why) == SW_OK) {
                given->values[i].line = line;
            } else {
                given->values[i].problem =
                    keep_format(given, "%s: %s; it is ignored", where, why.message);
                add_problem(given, given->values[i].problem);
            }
        }
        sw__free(all->raw[i].text);
    }
}

static void gather_file(sw_given *given, const struct sw__config_file *file)
{
    struct gathering all = {.given = given, .shown = file->path};
    const struct sw__config_sink sink = {take_entry, complain, &all};
    given->file = keep(given, file->path);
    if (!sw__config_read(file, &sink)) {
        complain_of(&all, 0, "there is no %s in it", sw__config_part(file->form));
    }
    settle(&all);
}

static void gather_presets(sw_given *given, const char *const *presets)
{
    struct gathering all = {.given = given, .shown = "config"};
    for (; *presets; presets++) {
        char key[SW__CONFIG_KEY];
        const char *equals = strchr(*presets, '=');
        size_t length = equals ? (size_t)(equals - *presets) : strlen(*presets);
        snprintf(key, sizeof key, "%.*s",
                 (int)(length < sizeof key ? length : sizeof key), *presets);
        take_entry(&all, &(struct sw__config_entry){.key = key,
                                                    .value = equals ? equals + 1 : ""});
    }
    settle(&all);
}

/* --- handing over --- */

/* Text that may be longer than the place for it. */
struct slot {
    char *out;
    size_t size, used;
};

static void slot_put(struct slot *slot, char c)
{
    if (slot->used + 1 < slot->size) {
        slot->out[slot->used] = c;
    }
    slot->used++;
}

static void slot_text(struct slot *slot, const char *text, bool escape)
{
    for (; *text; text++) {
        if (escape && (*text == '\\' || *text == '\n')) {
            slot_put(slot, '\\');
            slot_put(slot, (char)(*text == '\n' ? 'n' : '\\'));
        } else {
            slot_put(slot, *text);
        }
    }
}

/* The file's path, then "LINE KEY VALUE" for each option, each after a '\n'; "none" without a file. */
size_t sw_given_hand_over(const sw_given *given, char *out, size_t size)
{
    struct slot slot = {out, size, 0};
    slot_text(&slot, *given->file ? given->file : "none", true);
    for (int i = 0; i < SW__OPTIONS_MOST; i++) {
        const struct value *value = &given->values[i];
        if (value->text && value->source == SW_SOURCE_FILE) {
            char head[96];
            snprintf(head, sizeof head, "\n%u %s ", value->line, name_of(i));
            slot_text(&slot, head, false);
            slot_text(&slot, value->text, true);
        }
    }
    if (size > 0) {
        out[slot.used < size ? slot.used : size - 1] = '\0';
    }
    return slot.used;
}

/* Undoes the escapes of one line, in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        bool escaped = *at == '\\' && at[1];
        at += escaped;
        *to++ = (char)(escaped && *at == 'n' ? '\n' : *at);
    }
    *to = '\0';
}

static void gather_handed(sw_given *given, const char *text)
{
    char *copy = sw__arena_copy(given->arena, text, strlen(text));
    char *rest = NULL;
    char *line = copy ? strtok_r(copy, "\n", &rest) : NULL;
    if (line && strcmp(line, "none") != 0) {
        unescape(line);
        given->file = line;
    }
    while (line && (line = strtok_r(NULL, "\n", &rest)) != NULL) {
        char *key = line + strspn(line, "0123456789");
        char *value = *key == ' ' ? strchr(key + 1, ' ') : NULL;
        if (!value) {
            continue;
        }
        unsigned long number = strtoul(line, NULL, 10);
        int index = sw__option_find(key + 1, (size_t)(value - key - 1));
        unescape(value + 1);
        const char *where = keep_format(given, "%.200s:%lu", given->file, number);
        if (index >= 0 &&
            take(given, index, value + 1, SW_SOURCE_FILE, where, NULL) == SW_OK) {
            given->values[index].line = (unsigned)number;
        }
    }
}

/* --- all of it --- */

/* The file level. `named` is what the caller asks for. An error only when that one cannot be read. */
static int gather_lowest(sw_given *given, const char *named, sw_error_info *info)
{
    struct sw__config_file *file = &given->source;
    sw_error_info why = {0};
    int result = SW_ENOTFOUND;
    const char *handed = variable_value(PREFIX "FROM_FILE");
    const char *variable = variable_value(PREFIX "CONFIG");
    named = named && *named ? named : NULL;
    if (getauxval(AT_SECURE)) {
        return SW_OK; /* as with the environment */
    }
    if (named) {
        if (strcmp(named, "none") == 0) {
            return SW_OK;
        }
        result = sw__config_open(file, named, &why);
        if (result != SW_OK) {
            return sw_error_set(info, result, "%s", why.message);
        }
    } else if (handed) {
        gather_handed(given, handed);
        return SW_OK;
    } else if (variable) {
        if (strcmp(variable, "none") == 0) {
            return SW_OK;
        }
        result = sw__config_open(file, variable, &why);
        if (result != SW_OK) {
            add_problem(given,
                        keep_format(given, PREFIX "CONFIG is ignored: %s", why.message));
        }
    } else {
        result = sw__config_find(file, &why);
        if (result != SW_OK && result != SW_ENOTFOUND) {
            add_problem(given, keep_format(given, "%s; it is ignored", why.message));
        }
    }
    if (result == SW_OK) {
        gather_file(given, file);
        sw__config_close(file);
    }
    return SW_OK;
}

static sw_given *given_new(void)
{
    sw_given *given = sw__alloc_zero(1, sizeof *given);
    if (given) {
        given->file = "";
        given->arena = sw__arena_create(0);
        if (!given->arena) {
            sw__free(given);
            given = NULL;
        }
    }
    return given;
}

static void finish(sw_given *given)
{
    if (given->more_problems > 0) {
        given->problems[given->problem_count++] = keep_format(
            given, "there are %zu more problems of this kind", given->more_problems);
    }
}

sw_given *sw__given_gather(const char *file, const char *const *presets)
{
    sw_given *given = given_new();
    sw_error_info why = {0};
    if (!given) {
        return NULL;
    }
    if (presets) {
        gather_presets(given, presets);
    } else if (gather_lowest(given, file, &why) != SW_OK) {
        add_problem(given, keep_format(given, "%s; it is ignored", why.message));
    }
    /* `stepwatch run`, which hands the file over, has spoken of the environment; not of what this program names. */
    size_t own = given->problem_count;
    size_t own_more = given->more_problems;
    gather_environment(given);
    if (variable_value(PREFIX "FROM_FILE")) {
        given->problem_count = own;
        given->more_problems = own_more;
    }
    finish(given);
    return given;
}

int sw_given_read(sw_given **out, const char *file, const char *const *set,
                  sw_error_info *info)
{
    sw_given *given = given_new();
    *out = NULL;
    if (!given) {
        return sw_error_set(info, SW_ENOMEM, "out of memory");
    }
    int result = gather_lowest(given, file, info);
    gather_environment(given);
    for (; result == SW_OK && set && *set; set++) {
        const char *equals = strchr(*set, '=');
        size_t length = equals ? (size_t)(equals - *set) : strlen(*set);
        int index = sw__option_find(*set, length);
        if (!equals || index < 0) {
            result = sw_error_set(info, SW_ENOTFOUND, "there is no option \"%.*s\"",
                                  (int)(length < 60 ? length : 60), *set);
        } else if (!(given->off && strcmp(name_of(index), "enabled") == 0)) {
            result = take(given, index, equals + 1, SW_SOURCE_COMMAND, "--set", info);
        }
    }
    if (result != SW_OK) {
        sw_given_free(given);
        return result;
    }
    finish(given);
    *out = given;
    return SW_OK;
}

void sw_given_free(sw_given *given)
{
    if (given) {
        sw__arena_free(given->arena);
        sw__free(given);
    }
}

int sw_given_get(const sw_given *given, const char *name, sw_given_value *out)
{
    int index = name ? sw__option_find(name, strlen(name)) : -1;
    if (index < 0) {
        return SW_ENOTFOUND;
    }
    const struct value *value = &given->values[index];
    *out = (sw_given_value){.text = value->text ? value->text
                                                : sw_options(NULL)[index].default_value,
                            .source = value->text ? value->source : SW_SOURCE_DEFAULT,
                            .where = value->text ? value->where : "",
                            .problem = value->problem};
    return SW_OK;
}

const char *sw_given_file(const sw_given *given)
{
    return given->file;
}

void sw_given_place(const sw_given *given, char *out, size_t size)
{
    sw_given_value value = {.text = ""};
    sw_given_get(given, "out", &value);
    if (!*value.text) {
        sw_given_get(given, "runs_dir", &value);
        snprintf(out, size, "%s", value.text);
        return;
    }
    size_t length = strlen(value.text);
    while (length > 1 && value.text[length - 1] == '/') {
        length--;
    }
    while (length > 0 && value.text[length - 1] != '/') { /* the last part */
        length--;
    }
    while (length > 1 && value.text[length - 1] == '/') {
        length--;
    }
    snprintf(out, size, "%.*s", length ? (int)length : 1, length ? value.text : ".");
}

const char *sw_given_problem(const sw_given *given, size_t index)
{
    return index < given->problem_count ? given->problems[index] : NULL;
}

bool sw__given_off(const sw_given *given)
{
    return given->off;
}
