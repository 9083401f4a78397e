/* Joins the caller's configuration, the environment and the defaults to the settings in force. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "record/config.h"
#include "record/options.h"

#define PREFIX "STEPWATCH_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)

/* Variables that are no options: those that `stepwatch run` reads, or hands to its children. */
static const char *const internal[] = {"RUN_ID",  "SUPERVISOR", "PYTHON",
                                       "PACKAGE", "FUNCTIONS",  "LINES"};

struct warner {
    void (*warn)(void *arg, const char *sentence);
    void *arg;
};

/* Hands on a sentence, with bytes that could play tricks on a terminal shown as '?'. */
static void say(const struct warner *warner, char *sentence)
{
    for (char *at = sentence; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7F) {
            *at = '?';
        }
    }
    if (warner->warn) {
        warner->warn(warner->arg, sentence);
    }
}

static void warn_unknown(const struct warner *warner, const char *variable, size_t length)
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
    char sentence[256];
    snprintf(sentence, sizeof sentence, "%s%s is not a known setting%s%s%s", PREFIX, key,
             nearest ? "; did you mean " : " and is ignored", nearest ? known : "",
             nearest ? "?" : "");
    say(warner, sentence);
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

/* One warning for each variable that begins like ours and is none of ours: a misspelt setting
 * must not pass for one that was heard. */
static void warn_of_strangers(const struct warner *warner)
{
    for (char **entry = environ; entry && *entry; entry++) {
        if (strncmp(*entry, PREFIX, PREFIX_LENGTH) != 0) {
            continue;
        }
        size_t length = strcspn(*entry, "=");
        if (length > PREFIX_LENGTH &&
            !is_known(*entry + PREFIX_LENGTH, length - PREFIX_LENGTH)) {
            warn_unknown(warner, *entry, length);
        }
    }
}

/* The value of an option's variable, or NULL. An empty one says nothing, so that a script can
 * take back a setting by clearing it. A program with privileges that its caller lacks must not let that
 * caller say where it writes: there the environment is silent. */
static const char *variable_of(const char *name)
{
    char variable[64];
    sw__option_variable(name, variable, sizeof variable);
    const char *value = secure_getenv(variable);
    return value && *value ? value : NULL;
}

static void read_environment(struct sw__settings *out, const struct warner *warner)
{
    size_t count;
    const sw_option *options = sw_options(&count);
    for (size_t i = 0; i < count; i++) {
        const char *value = variable_of(options[i].name);
        sw_error_info why;
        if (!value) {
            continue;
        }
        if (sw__option_apply(out, (int)i, value, &why) != SW_OK) {
            char variable[64];
            char sentence[640];
            sw__option_variable(options[i].name, variable, sizeof variable);
            snprintf(sentence, sizeof sentence, "%s is ignored: %s", variable,
                     why.message);
            say(warner, sentence);
        } else if (strcmp(options[i].name, "enabled") == 0) {
            out->enabled_given = true;
        }
    }
    const char *run_id = variable_of("run_id");
    if (run_id && strlen(run_id) < sizeof out->run_id) {
        memcpy(out->run_id, run_id, strlen(run_id) + 1);
    }
    warn_of_strangers(warner);
}

/* Text of the struct; NULL and empty say nothing. */
static int take_text(struct sw__settings *out, const char *name, const char *value,
                     sw_error_info *info)
{
    return value && *value
               ? sw__option_apply(out, sw__option_find(name, strlen(name)), value, info)
               : SW_OK;
}

static int take_switch(bool *out, const char *name, int value, sw_error_info *info)
{
    if (value != SW_DEFAULT && value != SW_ON && value != SW_OFF) {
        return sw_error_set(info, SW_EINVAL,
                            "%s is %d but should be SW_DEFAULT, SW_ON or SW_OFF", name,
                            value);
    }
    *out = value == SW_DEFAULT ? *out : value == SW_ON;
    return SW_OK;
}

static int take_count(struct sw__settings *out, const char *name, unsigned value,
                      sw_error_info *info)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    return take_text(out, name, value ? text : NULL, info);
}

static int read_struct(struct sw__settings *out, const sw_config *config,
                       sw_error_info *info)
{
    int result = take_text(out, "name", config->name, info);
    result = result ? result : take_text(out, "out", config->out, info);
    result = result ? result : take_text(out, "policy", config->policy, info);
    result = result ? result : take_text(out, "schedule", config->schedule, info);
    result = result ? result : take_text(out, "hot_dir", config->hot_dir, info);
    result =
        result ? result : take_switch(&out->enabled, "enabled", config->enabled, info);
    result = result ? result : take_switch(&out->events, "events", config->events, info);
    result = result
                 ? result
                 : take_switch(&out->step_usage, "step_usage", config->step_usage, info);
    result = result ? result : take_switch(&out->quiet, "quiet", config->quiet, info);
    result = result ? result : take_count(out, "keep_first", config->keep_first, info);
    result = result ? result : take_count(out, "keep_last", config->keep_last, info);
    result = result ? result : take_count(out, "keep_worst", config->keep_worst, info);
    if (result == SW_OK && config->max_mb != 0) {
        result = sw__option_megabytes(config->max_mb, &out->max_bytes, info);
    }
    if (result == SW_OK && config->sampler_hz != 0) {
        result = sw__option_hertz(config->sampler_hz, &out->sampler_hz, info);
    }
    out->enabled_given |= config->enabled != SW_DEFAULT;
    return result;
}

int sw__settings_load(struct sw__settings *out, const sw_config *config, size_t size,
                      void (*warn)(void *arg, const char *sentence), void *arg,
                      sw_error_info *info)
{
    const struct warner warner = {warn, arg};
    size_t count;
    const sw_option *options = sw_options(&count);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        sw__option_apply(out, (int)i, options[i].default_value, NULL);
    }

    read_environment(out, &warner);
    bool off = out->enabled_given && !out->enabled;

    /* A caller built against an older header passes less; what it does not know is not given. */
    sw_config given = {0};
    if (config) {
        memcpy(&given, config, size < sizeof given ? size : sizeof given);
    }
    int result = read_struct(out, &given, info);
    out->enabled = out->enabled && !off && result == SW_OK;

    const char *warning = NULL;
    if (sw_schedule_check(&out->schedule, &warning, NULL) == SW_OK && warning) {
        char sentence[256];
        snprintf(sentence, sizeof sentence, "%s", warning);
        say(&warner, sentence);
    }
    if (!*out->name) {
        char name[sizeof out->name];
        sw__program_name(name, sizeof name);
        sw__option_apply(out, sw__option_find("name", 4), name, NULL);
    }
    return result;
}
