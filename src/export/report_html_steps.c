/* Steps in report.html: where their time goes, how they went on, and those that were slow. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/steps.h"
#include "base/memory.h"
#include "export/html_page.h"
#include "export/report_html.h"
#include "export/report_parts.h"

/* Steps in the picture and in the table; more are joined, or left to report.json. */
#define BARS_MOST 240
#define PICTURED_MOST 100000
#define LISTED_MOST 200
/* Of the picture, in units of its own. */
#define WIDTH 9600
#define HEIGHT 1800

/* --- phases --- */

static void put_timeline(const struct sw__html_report *it)
{
    static const char *const headers[] = {"part of the run", ">time", ">share"};
    sw__html_table_begin(it->w, headers, 3);
    for (size_t i = 0; i < sw_summary_part_count(it->summary); i++) {
        const sw_summary_part *part = sw_summary_get_part(it->summary, i);
        if (part->ns > 0) {
            sw__html_row_begin(it->w);
            sw__html_cell(it->w, part->part);
            sw__html_ns(it->w, part->ns);
            sw__html_percent(it->w, part->share);
            sw__html_row_end(it->w);
        }
    }
    sw__html_table_end(it->w);
}

static void put_bar(const struct sw__html_report *it, const struct sw__phase_line *lines,
                    size_t count)
{
    sw_write_text(it->w, "<div class=\"bar\">");
    for (size_t i = 0; i < count; i++) {
        const char *name = sw_phase_name(lines[i].phase);
        const unsigned whole = lines[i].tenths / 10;
        const unsigned tenth = lines[i].tenths % 10;
        sw_write_format(it->w,
                        "<span class=\"p-%s\" style=\"width:%u.%u%%\" title=\"%s %u.%u "
                        "%%\"></span>",
                        name, whole, tenth, name, whole, tenth);
    }
    sw_write_text(it->w, "</div>\n");
}

static void put_phase_rows(const struct sw__html_report *it,
                           const sw_summary_steps *steps,
                           const struct sw__phase_line *lines, size_t count)
{
    static const char *const headers[] = {"phase", ">a step", ">share", ">median",
                                          ">p99"};
    sw__html_table_begin(it->w, headers, 5);
    for (size_t i = 0; i < count; i++) {
        const sw_summary_phase *phase = &steps->phase[lines[i].phase];
        const char *name = sw_phase_name(lines[i].phase);
        sw__html_row_begin(it->w);
        sw_write_format(it->w, "<td class=\"p\"><span class=\"key p-%s\"></span>%s</td>",
                        name, name);
        sw__html_duration(it->w, lines[i].mean_ns);
        sw_write_format(it->w, "<td class=\"n\">%u.%u %%</td>", lines[i].tenths / 10,
                        lines[i].tenths % 10);
        sw__html_ns(it->w, phase->median_ns);
        sw__html_ns(it->w, phase->p99_ns);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
}

void sw__html_phases(const struct sw__html_report *it)
{
    const sw_summary_steps *steps = sw_summary_get_steps(it->summary);
    struct sw__phase_line lines[SW_PHASE_COUNT];
    const size_t count = steps ? sw__phase_lines(steps, lines) : 0;
    sw__html_section_begin(it->w, "phases", "Where the time goes");
    if (count > 0) {
        char number[32];
        sw_text_count(number, steps->counted);
        sw_write_format(it->w, "<p class=\"dim\">A step by its phases, mean of %s.</p>\n",
                        number);
        put_bar(it, lines, count);
        put_phase_rows(it, steps, lines, count);
        char note[SW__PHASES_NOTE];
        if (sw__phases_note(steps, note, sizeof note)) {
            sw_write_format(it->w, "<p class=\"dim\">%s</p>\n", note);
        }
    }
    if (sw_summary_part_count(it->summary) > 0) {
        put_timeline(it);
    }
    sw__html_section_end(it->w);
}

/* --- the picture of the steps --- */

struct picture {
    const struct sw__html_report *it;
    const sw_summary_step *steps;
    size_t count, bars;
    bool divided;  /* phases of some are reckoned */
    double top_ns; /* of the scale; what is above is cut */
};

static double step_ns(const sw_summary_step *step)
{
    return (double)(step->end_ns - step->begin_ns);
}

/* Mean time a step in one phase over the steps of a bar. */
static double bar_ns(const struct picture *picture, size_t bar, unsigned phase)
{
    const size_t first = bar * picture->count / picture->bars;
    const size_t last = (bar + 1) * picture->count / picture->bars;
    double sum = 0;
    for (size_t i = first; i < last; i++) {
        sum += (double)picture->steps[i].phase_ns[phase];
    }
    return last > first ? sum / (double)(last - first) : 0;
}

/* One path a phase: rectangles that stand on those of the phases before. Coordinates are whole numbers, which no locale
 * writes in its own way. */
static void put_layer(const struct picture *picture, unsigned phase, int *base)
{
    sw_writer *w = picture->it->w;
    bool begun = false;
    for (size_t bar = 0; bar < picture->bars; bar++) {
        const int left = (int)(bar * WIDTH / picture->bars);
        const int width = (int)((bar + 1) * WIDTH / picture->bars) - left;
        const double share = bar_ns(picture, bar, phase) / picture->top_ns;
        int height = share < 1 ? (int)(share * HEIGHT + 0.5) : HEIGHT;
        height = base[bar] + height > HEIGHT ? HEIGHT - base[bar] : height;
        if (height <= 0) {
            continue;
        }
        if (!begun) {
            sw_write_format(w, "<path class=\"p-%s\" d=\"", sw_phase_name(phase));
            begun = true;
        }
        sw_write_format(w, "M%d %dh%dv-%dh-%dz", left, HEIGHT - base[bar],
                        width - width / 8, height, width - width / 8);
        base[bar] += height;
    }
    if (begun) {
        sw_write_text(w, "\"/>\n");
    }
}

static void put_picture(struct picture *picture, const sw_summary_steps *whole)
{
    sw_writer *w = picture->it->w;
    double most = 0;
    char top[24];
    struct sw__phase_line lines[SW_PHASE_COUNT];
    const size_t phases = sw__phase_lines(whole, lines);
    int base[BARS_MOST] = {0};
    picture->bars = picture->count < BARS_MOST ? picture->count : BARS_MOST;
    for (size_t i = 0; i < picture->count; i++) {
        const double ns = step_ns(&picture->steps[i]);
        most = ns > most ? ns : most;
    }
    /* A few slow steps must not press all the others down to the ground. */
    const double usual =
        whole->p90_ns != SW_UNKNOWN && whole->p90_ns ? 2 * (double)whole->p90_ns : most;
    picture->top_ns = most < usual ? most : usual;
    if (!(picture->top_ns > 0)) {
        return;
    }
    sw_text_duration(top, picture->top_ns, false);
    sw_write_format(w,
                    "<svg class=\"steps\" viewBox=\"0 0 %d %d\" role=\"img\" "
                    "aria-label=\"Time of each "
                    "step\">\n<line x1=\"0\" x2=\"%d\" y1=\"5\" y2=\"5\"/>"
                    "<line x1=\"0\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n",
                    WIDTH, HEIGHT + 10, WIDTH, WIDTH, HEIGHT, HEIGHT);
    for (size_t i = 0; i < phases; i++) {
        put_layer(picture, lines[i].phase, base);
    }
    sw_write_format(w,
                    "</svg>\n<p class=\"dim\">Time of each step by phase, step %llu to "
                    "%llu; the full height is %s%s%s.</p>\n",
                    (unsigned long long)picture->steps[0].number,
                    (unsigned long long)picture->steps[picture->count - 1].number, top,
                    most > picture->top_ns ? ", longer ones are cut" : "",
                    picture->divided
                        ? "; what steps that were watched in brief have in phases "
                          "that are not measured there is divided as in the "
                          "others"
                        : "");
}

/* Divides what a step has in one phase among a set of them (bits) as it is in all steps. */
static void divide(sw_summary_step *step, const sw_summary_steps *whole, unsigned from,
                   unsigned phases)
{
    double shares = 0;
    const uint64_t rest = step->phase_ns[from];
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        shares += phases >> p & 1 ? whole->phase[p].share : 0;
    }
    for (unsigned p = 0; p < SW_PHASE_COUNT && shares > 0; p++) {
        if (phases >> p & 1) {
            step->phase_ns[p] = (uint64_t)((double)rest * whole->phase[p].share / shares);
        }
    }
}

/* What a step that was watched in brief has in no phase that is measured there, and what its data_wait is of making batches. */
static void divide_all(sw_summary_step *step, const sw_summary *summary,
                       const sw_summary_steps *whole)
{
    const unsigned all = (1u << SW_PHASE_COUNT) - 1;
    const unsigned inside = sw__phases_inside(summary);
    divide(step, whole, SW_PHASE_OTHER, all & ~SW_PHASES_ALWAYS & ~inside);
    if (inside) {
        divide(step, whole, SW_PHASE_DATA_WAIT, inside | 1u << SW_PHASE_DATA_WAIT);
    }
}

/* The newest of very many. */
static void put_steps(struct picture *picture, const sw_summary_steps *whole,
                      const sw_summary_step *steps, size_t count)
{
    const size_t left = count > PICTURED_MOST ? count - PICTURED_MOST : 0;
    sw_summary_step *shown = sw__alloc_zero(count - left, sizeof *shown);
    picture->steps = shown;
    for (size_t i = left; shown && i < count; i++) {
        sw_summary_step *step = &shown[picture->count++];
        *step = steps[i];
        if (step->brief) {
            divide_all(step, picture->it->summary, whole);
            picture->divided = true;
        }
    }
    if (picture->count > 0) {
        put_picture(picture, whole);
    }
    sw__free(shown);
}

/* --- lists --- */

static void put_worst(const struct sw__html_report *it, const sw_summary_steps *steps)
{
    static const char *const headers[] = {">step", ">time", "phase", "why"};
    if (steps->worst_count == 0) {
        return;
    }
    sw_write_text(it->w, "<h3>Slowest steps</h3>\n");
    sw__html_table_begin(it->w, headers, 4);
    for (size_t i = 0; i < steps->worst_count; i++) {
        const sw_summary_worst *worst = &steps->worst[i];
        sw__html_row_begin(it->w);
        sw__html_count(it->w, worst->step);
        sw__html_ns(it->w, worst->ns);
        sw__html_cell(it->w, sw_phase_name(worst->phase));
        sw__html_cell(it->w, worst->why);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
}

static void put_epochs(const struct sw__html_report *it)
{
    static const char *const headers[] = {">epoch", ">steps", ">time", ">first batch"};
    const size_t count = sw_summary_epoch_count(it->summary);
    if (count == 0) {
        return;
    }
    sw_write_text(it->w, "<h3>Epochs</h3>\n");
    sw__html_table_begin(it->w, headers, 4);
    for (size_t i = 0; i < count && i < LISTED_MOST; i++) {
        const sw_summary_epoch *epoch = sw_summary_get_epoch(it->summary, i);
        sw__html_row_begin(it->w);
        sw__html_count(it->w, epoch->epoch);
        sw__html_count(it->w, epoch->steps);
        sw__html_ns(it->w, epoch->ns);
        sw__html_ns(it->w, epoch->first_batch_ns);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > LISTED_MOST ? count - LISTED_MOST : 0, "epochs");
}

static void put_each(const struct sw__html_report *it, const sw_summary_steps *whole,
                     const sw_summary_step *steps, size_t count)
{
    struct sw__phase_line lines[SW_PHASE_COUNT];
    const char *headers[SW_PHASE_COUNT + 4] = {">step", ">epoch", ">time"};
    char names[SW_PHASE_COUNT][32];
    const size_t phases = sw__phase_lines(whole, lines);
    const size_t first = count > LISTED_MOST ? count - LISTED_MOST : 0;
    for (size_t i = 0; i < phases; i++) {
        snprintf(names[i], sizeof names[i], ">%s", sw_phase_name(lines[i].phase));
        headers[3 + i] = names[i];
    }
    headers[3 + phases] = "remark";
    sw_write_format(it->w, "<details><summary>%s%zu steps</summary>\n",
                    first ? "The last " : "All ", count - first);
    sw__html_table_begin(it->w, headers, phases + 4);
    for (size_t i = first; i < count; i++) {
        const sw_summary_step *step = &steps[i];
        sw__html_row_begin(it->w);
        sw__html_count(it->w, step->number);
        sw__html_count(it->w, step->epoch == UINT32_MAX ? SW_UNKNOWN : step->epoch);
        sw__html_duration(it->w, step_ns(step));
        for (size_t p = 0; p < phases; p++) {
            sw__html_ns(it->w, sw__phase_ns(step, lines[p].phase));
        }
        sw__html_cell(it->w, !step->complete ? "incomplete"
                             : step->warmup  ? "warm-up"
                             : step->brief   ? "in brief"
                                             : " ");
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw_write_text(it->w, "</details>\n");
}

static void put_figures(const struct sw__html_report *it, const sw_summary_steps *steps)
{
    static const char *const headers[] = {">steps", ">warm-up", ">incomplete", ">updates",
                                          ">mean",  ">p50",     ">p90",        ">p99",
                                          ">min",   ">max",     ">std"};
    const bool known = steps->counted > 0;
    sw__html_table_begin(it->w, headers, sizeof headers / sizeof headers[0]);
    sw__html_row_begin(it->w);
    sw__html_count(it->w, steps->count);
    sw__html_count(it->w, steps->warmup);
    sw__html_count(it->w, steps->incomplete);
    sw__html_count(it->w, steps->updates);
    sw__html_duration(it->w, known ? steps->mean_ns : NAN);
    const uint64_t values[] = {steps->p50_ns, steps->p90_ns, steps->p99_ns, steps->min_ns,
                               steps->max_ns};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        sw__html_ns(it->w, known ? values[i] : SW_UNKNOWN);
    }
    sw__html_duration(it->w, steps->std_ns);
    sw__html_row_end(it->w);
    sw__html_table_end(it->w);
}

void sw__html_steps(const struct sw__html_report *it)
{
    const sw_summary_steps *whole = sw_summary_get_steps(it->summary);
    struct picture picture = {.it = it};
    sw_summary_step *steps = NULL;
    size_t count = 0;
    sw__html_section_begin(it->w, "steps", "Steps");
    if (!whole) {
        sw_write_text(it->w, "<p class=\"dim\">The program recorded no steps.</p>\n");
        sw__html_section_end(it->w);
        return;
    }
    put_figures(it, whole);
    /* Without the steps one by one, what is known of them together is still there. */
    const bool known =
        sw_summary_step_series(it->summary, &steps, &count, NULL) == SW_OK && count > 0;
    if (known) {
        put_steps(&picture, whole, steps, count);
        sw__html_chart(it, SW_RUN_CHART_STEPS);
    }
    put_worst(it, whole);
    put_epochs(it);
    if (known) {
        const size_t left = count > PICTURED_MOST ? count - PICTURED_MOST : 0;
        put_each(it, whole, steps + left, count - left);
    }
    sw_summary_steps_free(steps);
    sw__html_section_end(it->w);
}
