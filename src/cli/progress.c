/* What is shown comes from the files that the processes write into as they run. One of them is followed: the first that has
 * steps, until it ends; ranks keep step with one another. */
#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <stepwatch/trace.h>
#include <stepwatch/write.h>

#include "cli/bottom_row.h"
#include "cli/cli.h"
#include "cli/progress.h"

#define SEEN_MOST 4096    /* files that are known */
#define LOOKED_AT_MOST 64 /* … and looked into until one has steps */
#define MOMENTS 32
#define WINDOW_S 10.0 /* that rates are of */
#define WAITING_MUCH 0.2

struct moment {
    double at_s;
    uint64_t steps, step_ticks, wait_ticks;
};

struct progress {
    char path[PATH_MAX];
    struct bottom_row row;
    bool colour, unicode;
    uint64_t seen
        [SEEN_MOST]; /* inodes of files that were opened, or found not to be worth it */
    size_t seen_count;
    struct timespec changed; /* of the folder, when it was last read */
    sw_glance *glance[LOOKED_AT_MOST];
    size_t glances;
    sw_glance *followed; /* one of them */
    struct moment
        moment[MOMENTS]; /* when the steps were found to be more, oldest first */
    size_t moments;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct progress *progress_start(const char *run_dir)
{
    struct bottom_row row;
    bottom_row_open(&row, STDERR_FILENO);
    struct progress *progress = row.fd >= 0 ? calloc(1, sizeof *progress) : NULL;
    if (!progress) {
        bottom_row_close(&row);
        return NULL;
    }
    sw_text_options look =
        cli_text_options(STDERR_FILENO, 0, "auto", CLI_CHARACTERS_AUTO, 0);
    progress->row = row;
    progress->colour = look.colour;
    progress->unicode = look.unicode;
    snprintf(progress->path, sizeof progress->path, "%s", run_dir);
    return progress;
}

void progress_pause(struct progress *progress)
{
    if (progress) {
        bottom_row_hide(&progress->row);
    }
}

void progress_free(struct progress *progress)
{
    if (!progress) {
        return;
    }
    bottom_row_close(&progress->row);
    for (size_t i = 0; i < progress->glances; i++) {
        sw_glance_free(progress->glance[i]);
    }
    free(progress);
}

/* --- which process --- */

static bool is_seen(const struct progress *progress, uint64_t inode)
{
    for (size_t i = progress->seen_count; i-- > 0;) {
        if (progress->seen[i] == inode) {
            return true;
        }
    }
    return false;
}

/* Opens the files that are new in the folder. */
static void look_for_files(struct progress *progress)
{
    struct stat status;
    if (stat(progress->path, &status) != 0 ||
        memcmp(&status.st_mtim, &progress->changed, sizeof progress->changed) == 0) {
        return;
    }
    progress->changed = status.st_mtim;
    DIR *folder = opendir(progress->path);
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char path[PATH_MAX + 260];
        sw_glance *glance;
        if (fnmatch("?*.stepwatch", entry->d_name, FNM_PERIOD) != 0 ||
            is_seen(progress, (uint64_t)entry->d_ino) ||
            progress->seen_count == SEEN_MOST || progress->glances == LOOKED_AT_MOST) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", progress->path, entry->d_name);
        int error = sw_glance_open(&glance, path);
        if (error == SW_OK) {
            progress->glance[progress->glances++] = glance;
        }
        if (error == SW_EFORMAT) { /* its first page may be on its way */
            progress->changed = (struct timespec){0};
        } else {
            progress->seen[progress->seen_count++] = (uint64_t)entry->d_ino;
        }
    }
    if (folder) {
        closedir(folder);
    }
}

static void forget(struct progress *progress, size_t index)
{
    if (progress->followed == progress->glance[index]) {
        progress->followed = NULL;
        progress->moments = 0;
    }
    sw_glance_free(progress->glance[index]);
    progress->glance[index] = progress->glance[--progress->glances];
}

/* The steps of the process that is followed; false: none has any. */
static bool read_steps(struct progress *progress, sw_glance_steps *steps)
{
    if (progress->followed && sw_glance_read(progress->followed, steps) == SW_OK &&
        !steps->ended) {
        return true;
    }
    look_for_files(progress);
    for (size_t i = 0; i < progress->glances;) {
        int error = sw_glance_read(progress->glance[i], steps);
        if (steps->ended) {
            forget(progress, i);
        } else if (error == SW_OK) {
            progress->followed = progress->glance[i];
            progress->moments = 0;
            return true;
        } else {
            i++;
        }
    }
    return false;
}

/* --- what to say of it --- */

static void remember(struct progress *progress, const sw_glance_steps *steps, double now)
{
    struct moment *moment = progress->moment;
    size_t *count = &progress->moments;
    if (*count > 0 && moment[*count - 1].steps == steps->steps) {
        return;
    }
    /* Two are always kept, however far apart. */
    while (*count >= 2 &&
           (*count == MOMENTS || (moment[1].at_s <= now - WINDOW_S && *count > 2))) {
        --*count;
        memmove(moment, moment + 1, *count * sizeof *moment);
    }
    moment[(*count)++] =
        (struct moment){.at_s = now,
                        .steps = steps->steps,
                        .step_ticks = steps->step_ticks,
                        .wait_ticks = steps->phase_ticks[SW_PHASE_DATA_WAIT]};
}

struct figures {
    uint64_t steps;
    double rate;  /* steps a second, 0: not known yet */
    double wait;  /* share of the steps' time, negative: not known */
    double since; /* seconds that no step has ended, 0: not worth telling */
};

static struct figures work_out(const struct progress *progress, double now)
{
    const struct moment *first = &progress->moment[0];
    const struct moment *last = &progress->moment[progress->moments - 1];
    struct figures figures = {.steps = last->steps, .wait = -1};
    double between = last->at_s - first->at_s;
    if (between > 0 && last->steps > first->steps) {
        figures.rate = (double)(last->steps - first->steps) / between;
    }
    if (last->wait_ticks > 0 && last->step_ticks > first->step_ticks &&
        last->wait_ticks >= first->wait_ticks) {
        figures.wait = (double)(last->wait_ticks - first->wait_ticks) /
                       (double)(last->step_ticks - first->step_ticks);
        figures.wait = figures.wait > 1 ? 1 : figures.wait;
    }
    double usual = figures.rate > 0 ? 5 / figures.rate : WINDOW_S;
    double quiet = now - last->at_s;
    figures.since = quiet > WINDOW_S && quiet > usual ? quiet : 0;
    return figures;
}

static void say_rate(char *out, size_t size, double rate, bool brief)
{
    if (rate <= 0) {
        *out = '\0';
    } else if (rate < 1) {
        snprintf(out, size, brief ? "%.3gs" : "%.3g s/step", 1 / rate);
    } else if (rate < 1000) {
        snprintf(out, size, brief ? "%.3g/s" : "%.3g steps/s", rate);
    } else {
        snprintf(out, size, brief ? "%.0f/s" : "%.0f steps/s", rate);
    }
}

/* As much as fits, in whole parts. */
static void compose(const struct progress *progress, const struct figures *figures,
                    unsigned room, char *out, size_t size)
{
    char count[32];
    char part[3][64];
    bool brief = room < 52;
    const char *gap = brief ? "  " : progress->unicode ? " \xC2\xB7 " : " | ";
    sw_text_count(count, figures->steps);
    snprintf(part[0], sizeof part[0], brief ? "step %s" : "stepwatch  step %s", count);
    say_rate(part[1], sizeof part[1], figures->rate, brief);
    part[2][0] = '\0';
    if (figures->since > 0) {
        char lasted[24];
        sw_text_duration(lasted, figures->since * 1e9, !progress->unicode);
        snprintf(part[1], sizeof part[1], brief ? "%s ago" : "last step %s ago", lasted);
    } else if (figures->wait >= 0) {
        snprintf(part[2], sizeof part[2], brief ? "wait %.0f%%" : "waiting %.0f %%",
                 figures->wait * 100);
    }
    *out = '\0';
    for (size_t i = 0; i < 3; i++) {
        size_t used = strlen(out);
        if (!part[i][0] ||
            sw_text_columns(out, used) + strlen(part[i]) + (used ? strlen(gap) : 0) >
                room) {
            continue;
        }
        snprintf(out + used, size - used, "%s%s", used ? gap : "", part[i]);
    }
}

void progress_tick(struct progress *progress)
{
    sw_glance_steps steps;
    char text[256];
    if (!read_steps(progress, &steps)) {
        return;
    }
    double now = now_s();
    remember(progress, &steps, now);
    unsigned room = bottom_row_room(&progress->row);
    if (room == 0 || steps.steps == 0) {
        return;
    }
    struct figures figures = work_out(progress, now);
    compose(progress, &figures, room, text, sizeof text);
    const char *colour = figures.wait >= WAITING_MUCH ? "33" : "2";
    bottom_row_show(&progress->row, text, progress->colour ? colour : NULL);
}
