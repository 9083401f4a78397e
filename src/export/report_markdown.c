/* The report as Markdown, for the description of a pull request: the verdict, the figures, what to change. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/export.h>

#include "export/report_parts.h"

/* More would hide everything else. */
#define GPUS_MOST 8

/* Whether a character would be markup where it stands. Underscores within words are none. */
static bool is_markup(const char *text, size_t at)
{
    const char c = text[at];
    if (c == '_') {
        return at == 0 || !isalnum((unsigned char)text[at - 1]) ||
               !isalnum((unsigned char)text[at + 1]);
    }
    return c != '\0' && strchr("\\`*[]<>|#~&!", c) != NULL;
}

/* Bytes of a program as text. Nobody is called by an @ in it. */
static void put_text(sw_writer *w, const char *bytes)
{
    sw_writer *visible = bytes ? sw_writer_to_memory() : NULL;
    if (!visible) {
        return;
    }
    sw_write_visible(visible, bytes, strlen(bytes), 0, false);
    const char *text = sw_writer_text(visible, NULL);
    for (size_t i = 0; text && text[i]; i++) {
        if (is_markup(text, i)) {
            sw_write_text(w, "\\");
        }
        sw_write_bytes(w, text + i, 1);
        if (text[i] == '@') {
            sw_write_text(w, "&#8203;");
        }
    }
    sw_writer_close(visible, NULL);
}

static void put_duration(sw_writer *w, double ns)
{
    char text[24] = "-";
    if (isfinite(ns)) {
        sw_text_duration(text, ns, false);
    }
    sw_write_text(w, text);
}

static void put_steps(sw_writer *w, const sw_summary *summary)
{
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    char text[32];
    if (!steps || steps->counted == 0) {
        return;
    }
    sw_write_text(w, "| steps | mean | p50 | p99 | steps/s | samples/s |\n"
                     "| ---: | ---: | ---: | ---: | ---: | ---: |\n| ");
    sw_text_count(text, steps->count);
    sw_write_format(w, "%s | ", text);
    put_duration(w, steps->mean_ns);
    sw_write_text(w, " | ");
    put_duration(w, steps->p50_ns == SW_UNKNOWN ? NAN : (double)steps->p50_ns);
    sw_write_text(w, " | ");
    put_duration(w, steps->p99_ns == SW_UNKNOWN ? NAN : (double)steps->p99_ns);
    sw__text_number(text, sizeof text, steps->steps_per_s);
    sw_write_format(w, " | %s", text);
    sw__text_number(text, sizeof text, steps->samples_per_s);
    sw_write_format(w, " | %s |\n\n", text);
}

static void put_phases(sw_writer *w, const sw_summary *summary)
{
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    struct sw__phase_line lines[SW_PHASE_COUNT];
    const size_t count = steps ? sw__phase_lines(steps, lines) : 0;
    if (count == 0) {
        return;
    }
    sw_write_text(w, "| phase | a step | share |\n| :--- | ---: | ---: |\n");
    for (size_t i = 0; i < count; i++) {
        sw_write_format(w, "| %s | ", sw_phase_name(lines[i].phase));
        put_duration(w, lines[i].mean_ns);
        sw_write_format(w, " | %u.%u %% |\n", lines[i].tenths / 10, lines[i].tenths % 10);
    }
    sw_write_text(w, "\n");
    char note[SW__PHASES_NOTE];
    if (sw__phases_note(steps, note, sizeof note)) {
        sw_write_format(w, "%s\n\n", note);
    }
}

static void put_line(sw_writer *w, const char *title, const char *text)
{
    if (*text) {
        sw_write_format(w, "- %s: ", title);
        put_text(w, text);
        sw_write_text(w, "\n");
    }
}

/* "read 1.2 GiB in 3,400 calls, 2.1 s" */
static void put_files(sw_writer *w, const sw_io *io, enum sw_io_operation operation,
                      const char *title)
{
    const sw_io_sum *sum = sw_io_total(io, SW_IO_KIND_FILE, operation);
    char bytes[24], calls[32], taken[24], text[128] = "";
    if (sum->calls > 0) {
        sw_text_bytes(bytes, sum->bytes);
        sw_text_count(calls, sum->calls);
        sw_text_duration(taken, (double)sum->ns, false);
        snprintf(text, sizeof text, "%s in %s calls, %s", bytes, calls, taken);
    }
    put_line(w, title, text);
}

/* Memory, the machine, GPUs and files, a line each. */
static void put_machine(sw_writer *w, const sw_summary *summary)
{
    char text[SW__LINE];
    size_t count;
    const sw_gpu *gpus = sw_gpus_get(sw_summary_gpus(summary), &count);
    const sw_io *io = sw_summary_io(summary);
    sw_writer *lines = sw_writer_to_memory();
    sw__memory_line(text, sizeof text, summary);
    put_line(lines, "Memory", text);
    sw__monitor_line(text, sizeof text, summary);
    put_line(lines, "Machine", text);
    for (size_t i = 0; i < count && i < GPUS_MOST; i++) {
        if (sw__gpu_is_shown(&gpus[i])) {
            char title[32];
            snprintf(title, sizeof title, "GPU %u", gpus[i].index);
            sw__gpu_line(text, sizeof text, &gpus[i], true);
            put_line(lines, title, text);
        }
    }
    if (io) {
        put_files(lines, io, SW_IO_READ, "Files read");
        put_files(lines, io, SW_IO_WRITE, "Files written");
    }
    size_t length;
    const char *all = sw_writer_text(lines, &length);
    sw_write_bytes(w, all, length);
    sw_write_text(w, length ? "\n" : "");
    sw_writer_close(lines, NULL);
}

static void put_finding(sw_writer *w, const sw_finding *finding, size_t number)
{
    char gain[SW__GAIN];
    sw__gain_text(gain, finding);
    sw_write_format(w, "%zu. **", number);
    put_text(w, finding->title ? finding->title : "?");
    sw_write_format(w, "** (%s%s%s)", sw_severity_name(finding->severity),
                    *gain ? ", " : "", gain);
    if (finding->file || finding->name) {
        sw_write_text(w, "  \n   in ");
        put_text(w, finding->name);
        sw_write_text(w, finding->file && finding->name ? ", " : "");
        put_text(w, finding->file);
        if (finding->file && finding->line) {
            sw_write_format(w, ":%u", finding->line);
        }
    }
    sw_write_text(w, "\n");
    for (size_t i = 0; i < finding->advice_count; i++) {
        sw_write_text(w, "   - ");
        put_text(w, finding->advice[i]);
        sw_write_text(w, "\n");
    }
}

static void put_notes(sw_writer *w, const sw_summary *summary,
                      const sw_findings *findings)
{
    const char *note;
    bool any = false;
    for (size_t i = 0; (note = sw_summary_note(summary, i)) != NULL; i++) {
        sw_write_text(w, any ? "- " : "\nNotes:\n\n- ");
        put_text(w, note);
        sw_write_text(w, "\n");
        any = true;
    }
    for (size_t i = 0; findings && (note = sw_findings_note(findings, i)) != NULL; i++) {
        sw_write_text(w, any ? "- " : "\nNotes:\n\n- ");
        put_text(w, note);
        sw_write_text(w, "\n");
        any = true;
    }
}

void sw_export_report_markdown(sw_writer *writer, const sw_summary *summary,
                               const sw_findings *findings)
{
    const sw_summary_run *run = sw_summary_get_run(summary);
    size_t count = 0;
    const sw_finding *list = findings ? sw_findings_get(findings, &count) : NULL;
    sw_write_text(writer, "### ");
    put_text(writer, run->name && *run->name ? run->name : "(unnamed)");
    sw_write_text(writer, "\n\n**");
    sw_writer *sentence = sw_writer_to_memory();
    if (sentence) {
        (void)sw__put_verdict(sentence, summary, findings);
        put_text(writer, sw_writer_text(sentence, NULL));
        sw_writer_close(sentence, NULL);
    }
    sw_write_text(writer, "**\n\n");
    put_steps(writer, summary);
    put_phases(writer, summary);
    put_machine(writer, summary);
    for (size_t i = 0; i < count; i++) {
        put_finding(writer, &list[i], i + 1);
    }
    put_notes(writer, summary, findings);
}
