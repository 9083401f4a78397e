/* stepwatch doctor: what can be recorded here, and why not what cannot. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/config.h>
#include <stepwatch/record.h>
#include <stepwatch/version.h>

#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/option_parser.h"

enum { JSON, CONFIG, CLEAN, OPTIONS };

static const struct option_spec options[OPTIONS] = {
    [JSON] = {"json", 0, NULL, "one JSON document, schema stepwatch.doctor/1"},
    [CONFIG] = {"config", 0, "FILE",
                "configuration file; else the one found from here up"},
    [CLEAN] = {"clean", 0, NULL, "remove recording memory that killed programs left"},
};

static const struct command command = {
    .name = "doctor",
    .usage = "[options]",
    .purpose =
        "Says what can be recorded here, and why not what cannot. Exits with 1 when\n"
        "nothing can be recorded.",
    .options = options,
    .option_count = OPTIONS,
};

static const char *const status_names[] = {"ok", "warn", "fail"};

static const char *const source_names[] = {"default", "file", "environment", "command"};

static void put_json(sw_writer *w, const struct checks *checks, const sw_given *given,
                     bool good)
{
    sw_json_start(w, true);
    sw_json_object_begin(w);
    sw_json_key(w, "schema");
    sw_json_string(w, "stepwatch.doctor/1");
    sw_json_key(w, "version");
    sw_json_string(w, SW_VERSION_STRING);
    sw_json_key(w, "ok");
    sw_json_bool(w, good);
    sw_json_key(w, "checks");
    sw_json_array_begin(w);
    for (size_t i = 0; i < checks->count; i++) {
        sw_json_object_begin(w);
        sw_json_key(w, "check");
        sw_json_string(w, checks->list[i].name);
        sw_json_key(w, "status");
        sw_json_string(w, status_names[checks->list[i].status]);
        sw_json_key(w, "text");
        sw_json_string(w, checks->list[i].text);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    sw_json_key(w, "config_file");
    sw_json_string(w, *sw_given_file(given) ? sw_given_file(given) : NULL);
    sw_json_key(w, "options");
    sw_json_array_begin(w);
    size_t count;
    const sw_option *known = sw_options(&count);
    for (size_t i = 0; i < count; i++) {
        sw_given_value setting = {0};
        sw_given_get(given, known[i].name, &setting);
        sw_json_object_begin(w);
        sw_json_key(w, "option");
        sw_json_string(w, known[i].name);
        sw_json_key(w, "type");
        sw_json_string(w, known[i].type);
        sw_json_key(w, "value");
        sw_json_string(w, setting.text);
        sw_json_key(w, "source");
        sw_json_string(w, source_names[setting.source]);
        sw_json_key(w, "where");
        sw_json_string(w, *setting.where ? setting.where : NULL);
        sw_json_key(w, "default");
        sw_json_string(w, known[i].default_value);
        sw_json_key(w, "problem");
        sw_json_string(w, setting.problem);
        sw_json_key(w, "help");
        sw_json_string(w, known[i].help);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
    sw_write_text(w, "\n");
}

/* A sentence in lines of `columns`, indented after the first. */
static void put_wrapped(sw_writer *w, const char *text, size_t indent, size_t columns)
{
    size_t at = indent;
    for (bool begun = false; *text; begun = true) {
        size_t length = strcspn(text, " ");
        size_t width = sw_text_columns(text, length);
        if (begun && at + 1 + width > columns) {
            sw_write_text(w, "\n");
            sw_write_repeat(w, " ", indent);
            at = indent;
        } else if (begun) {
            sw_write_text(w, " ");
            at++;
        }
        at += sw_write_visible(w, text, length, 0, true);
        text += length;
        text += strspn(text, " ");
    }
    sw_write_text(w, "\n");
}

static void put_text(sw_writer *w, const struct checks *checks, const sw_given *given,
                     const sw_text_options *look)
{
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};
    for (size_t i = 0; i < checks->count; i++) {
        const struct check *check = &checks->list[i];
        sw_write_format(
            w, "%s%-4s%s  %-19s  ", look->colour ? colours[check->status] : "",
            status_names[check->status], look->colour ? "\033[0m" : "", check->name);
        put_wrapped(w, check->text, 27, look->columns);
    }
    sw_write_text(w, "\nOptions (STEPWATCH_<NAME>, a file, or run --set NAME=VALUE)\n");
    size_t count;
    const sw_option *known = sw_options(&count);
    for (size_t i = 0; i < count; i++) {
        sw_given_value setting = {0};
        char value[128];
        sw_given_get(given, known[i].name, &setting);
        snprintf(value, sizeof value, "%.100s", *setting.text ? setting.text : "(none)");
        sw_write_format(w, "  %-18s  ", known[i].name);
        size_t used = sw_write_visible(w, value, strlen(value), 16, true);
        sw_write_repeat(w, " ", used < 8 ? 8 - used : 0);
        sw_write_text(w, "  ");
        const char *where = *setting.where ? setting.where : "default";
        sw_write_visible(w, where, strlen(where), look->columns - 40, true);
        sw_write_text(w, "\n");
        sw_write_repeat(w, " ", 6);
        put_wrapped(w, setting.problem ? setting.problem : known[i].help, 6,
                    look->columns);
    }
}

/* The file, and everything that was said and does not count. */
static void check_configuration(struct checks *checks, const sw_given *given)
{
    const char *file = sw_given_file(given);
    const char *sentence;
    size_t count = 0;
    while ((sentence = sw_given_problem(given, count)) != NULL) {
        size_t length = strlen(sentence);
        check_add(checks, "configuration", CHECK_WARN, "%.380s%s", sentence,
                  length > 0 && strchr(".?!", sentence[length - 1]) ? "" : ".");
        count++;
    }
    if (count == 0 && *file) {
        check_add(checks, "configuration", CHECK_OK, "%.300s is read.", file);
    } else if (count == 0) {
        check_add(checks, "configuration", CHECK_OK,
                  "There is no configuration file here or above.");
    }
}

int cmd_doctor(int argc, char **argv)
{
    struct option_parser parser = option_parser_start(&command, argc, argv, false);
    const char *value;
    bool json = false;
    bool clean = false;
    const char *file = NULL;
    for (int option; (option = option_next(&parser, &value)) != OPTION_END;) {
        switch (option) {
        case OPTION_HELP:
            command_help(&command);
            return CLI_GOOD;
        case JSON:
            json = true;
            break;
        case CONFIG:
            file = value;
            break;
        case CLEAN:
            clean = true;
            break;
        case OPTION_OPERAND:
            cli_complain("doctor: takes no operand, such as '%.100s'", value);
            return CLI_USAGE;
        default:
            return CLI_USAGE;
        }
    }
    sw_given *given;
    sw_given_value out = {.text = ""};
    sw_error_info why = {0};
    if (sw_given_read(&given, file, NULL, &why) != SW_OK) {
        cli_complain("doctor: %s", why.message);
        return CLI_USAGE;
    }
    sw_given_get(given, "out", &out);
    if (!*out.text) {
        sw_given_get(given, "runs_dir", &out);
    }
    static struct checks checks;
    check_clock(&checks);
    check_memory_folder(&checks);
    check_run_folder(&checks, out.text);
    check_limits(&checks);
    check_cpus(&checks);
    check_kernel(&checks);
    check_python(&checks);
    check_monitor(&checks);
    check_history(&checks);
    check_orphans(&checks, clean);
    check_configuration(&checks, given);
    bool good = true;
    for (size_t i = 0; i < checks.count; i++) {
        good = good && checks.list[i].status != CHECK_FAIL;
    }

    signal(SIGPIPE, SIG_IGN);
    sw_writer *writer = sw_writer_to_fd(STDOUT_FILENO);
    if (writer && json) {
        put_json(writer, &checks, given, good);
    } else if (writer) {
        sw_text_options look =
            cli_text_options(STDOUT_FILENO, 0, "auto", CLI_CHARACTERS_AUTO, 0);
        look.columns =
            look.columns < SW_TEXT_COLUMNS_MIN ? SW_TEXT_COLUMNS_MIN : look.columns;
        put_text(writer, &checks, given, &look);
    }
    sw_error_info info = {0};
    int error = writer ? sw_writer_close(writer, &info) : SW_ENOMEM;
    if (error && info.os_errno != EPIPE) {
        cli_complain("the result could not be written: %s",
                     info.message[0] ? info.message : sw_error_text(error));
        return CLI_UNREADABLE;
    }
    return good ? CLI_GOOD : CLI_NO;
}
