/* Joins the caller's configuration, environment, file and defaults to the settings in force. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "record/config.h"
#include "record/given.h"
#include "record/options.h"

struct warner {
    void (*warn)(void *arg, const char *sentence);
    void *arg;
};

static void say(const struct warner *warner, const char *sentence)
{
    if (warner->warn) {
        warner->warn(warner->arg, sentence);
    }
}

/* What environment and file say. */
static void read_given(struct sw__settings *out, const sw_given *given,
                       const struct warner *warner)
{
    size_t count;
    const sw_option *options = sw_options(&count);
    for (size_t i = 0; i < count; i++) {
        sw_given_value value;
        sw_given_get(given, options[i].name, &value);
        if (value.source != SW_SOURCE_DEFAULT) {
            sw__option_apply(out, (int)i, value.text, NULL);
            out->enabled_given |= strcmp(options[i].name, "enabled") == 0;
        }
    }
    const char *sentence;
    for (size_t i = 0; (sentence = sw_given_problem(given, i)) != NULL; i++) {
        say(warner, sentence);
    }
}

/* The options of the list `set`. */
static int read_set(struct sw__settings *out, const char *const *set, sw_error_info *info)
{
    for (; set && *set; set++) {
        const char *equals = strchr(*set, '=');
        size_t length = equals ? (size_t)(equals - *set) : strlen(*set);
        int index = sw__option_find(*set, length);
        if (!equals || index < 0) {
            return sw_error_set(info, SW_EINVAL, "there is no option \"%.*s\"",
                                (int)(length < 60 ? length : 60), *set);
        }
        int result = sw__option_apply(out, index, equals + 1, info);
        if (result != SW_OK) {
            return result;
        }
        out->enabled_given |= length == 7 && memcmp(*set, "enabled", 7) == 0;
    }
    return SW_OK;
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
    result = result ? result : take_text(out, "runs_dir", config->runs_dir, info);
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
    if (result == SW_OK && config->monitor_interval_s != 0) {
        result = sw__option_seconds("monitor_interval_s", config->monitor_interval_s,
                                    &out->monitor_interval_s, info);
    }
    if (result == SW_OK && config->monitor_pss_s != 0) {
        result = sw__option_seconds("monitor_pss_s", config->monitor_pss_s,
                                    &out->monitor_pss_s, info);
    }
    out->enabled_given |= config->enabled != SW_DEFAULT;
    return result ? result : read_set(out, config->set, info);
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

    /* A caller built against an older header passes less; what it does not know is not given. */
    sw_config fields = {0};
    if (config) {
        memcpy(&fields, config, size < sizeof fields ? size : sizeof fields);
    }
    sw_given *given = sw__given_gather(fields.config, fields.presets);
    bool off = false;
    if (given) {
        read_given(out, given, &warner);
        off = sw__given_off(given);
        sw_given_free(given);
    }
    const char *run_id = secure_getenv("STEPWATCH_RUN_ID");
    if (run_id && strlen(run_id) < sizeof out->run_id) {
        memcpy(out->run_id, run_id, strlen(run_id) + 1);
    }
    int result = read_struct(out, &fields, info);
    out->enabled = out->enabled && !off && result == SW_OK;

    const char *warning = NULL;
    if (sw_schedule_check(&out->schedule, &warning, NULL) == SW_OK && warning) {
        say(&warner, warning);
    }
    if (!*out->runs_dir) {
        memcpy(out->runs_dir, "runs/profiling", sizeof "runs/profiling");
    }
    if (!*out->name) {
        char name[sizeof out->name];
        sw__program_name(name, sizeof name);
        sw__option_apply(out, sw__option_find("name", 4), name, NULL);
    }
    return result;
}
