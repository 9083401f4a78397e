/* What watched calls on files and sockets add to findings, and remarks of their own: small reads, the same bytes read again, waiting for
 * the disk. Without `--io` there is nothing here. */
#include <math.h>
#include <string.h>

#include "analyze/rules.h"
#include "analyze/rules_loader.h"
#include "analyze/summary.h"

#define LOADING                                                                          \
    (SW__PHASE_BIT(SW_PHASE_DATA_WAIT) | SW__PHASE_BIT(SW_PHASE_PREPROCESS) |            \
     SW__PHASE_BIT(SW_PHASE_AUGMENT) | SW__PHASE_BIT(SW_PHASE_COLLATE))
/* Fewer reads say nothing; most of them small is worth a sentence, and so is a second reading of everything. */
#define READS_LEAST 1000
#define SMALL_LEAST 0.5
#define AGAIN_LEAST 1.5
/* Less of the time is not worth a remark. */
#define REMARK_LEAST 0.03

struct reading {
    sw_io_sum read; /* read and receive */
    uint64_t ns;    /* of these, and of opening and closing */
    double times;   /* how often files were read, by bytes; NaN: not known */
    const sw_io_thing *most;
    bool sockets; /* most of it came from there */
};

static void add(sw_io_sum *into, const sw_io_sum *from)
{
    into->calls = sw__add(into->calls, from->calls);
    into->bytes = sw__add(into->bytes, from->bytes);
    into->ns = sw__add(into->ns, from->ns);
    into->small = sw__add(into->small, from->small);
}

/* What is read where batches are made: in the phases of loading, and in processes without steps. */
static bool find_reading(const sw_findings *all, struct reading *out)
{
    const sw_io *io = sw_summary_io(all->it.summary);
    *out = (struct reading){.times = NAN};
    if (!io) {
        return false;
    }
    size_t count;
    const sw_io_section *sections = sw_io_sections(io, &count);
    for (size_t i = 0; i < count; i++) {
        const sw_io_section *at = &sections[i];
        const bool loading = !at->training || (at->phase < SW_PHASE_COUNT &&
                                               LOADING & SW__PHASE_BIT(at->phase));
        if (loading) {
            add(&out->read, &at->sum[SW_IO_READ]);
            add(&out->read, &at->sum[SW_IO_RECEIVE]);
            out->ns = sw__add(out->ns, at->sum[SW_IO_OPEN].ns);
            out->ns = sw__add(out->ns, at->sum[SW_IO_CLOSE].ns);
        }
    }
    out->ns = sw__add(out->ns, out->read.ns);
    const sw_io_thing *things = sw_io_things(io, &count);
    double read = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        const sw_io_thing *at = &things[i];
        const bool file = at->kind == SW_IO_KIND_FILE || at->kind == SW_IO_KIND_FOLDER;
        if (!file && at->kind != SW_IO_KIND_SOCKET) {
            continue;
        }
        if (at->again != SW_UNKNOWN && at->size > 0 && at->sum[SW_IO_READ].bytes > 0) {
            const double bytes = (double)at->sum[SW_IO_READ].bytes;
            read += bytes;
            size += at->again ? bytes - (double)at->again : (double)at->size;
        }
        if (!out->most && at->sum[SW_IO_READ].bytes + at->sum[SW_IO_RECEIVE].bytes > 0) {
            out->most = at;
        }
    }
    out->times = size > 0 ? read / size : NAN;
    out->sockets = out->most && out->most->kind == SW_IO_KIND_SOCKET;
    return out->read.calls > 0;
}

static double small_share(const struct reading *reading)
{
    return reading->read.calls ? (double)reading->read.small / (double)reading->read.calls
                               : NAN;
}

void sw__loader_calls(sw_findings *all, struct sw__draft *draft)
{
    struct reading reading;
    if (!find_reading(all, &reading)) {
        return;
    }
    const double small = small_share(&reading);
    sw__draft_number(draft, "io_s", (double)reading.ns / 1e9);
    sw__draft_number(draft, "io_read_mb", (double)reading.read.bytes / 1e6);
    sw__draft_number(draft, "io_small_share", small);
    sw__draft_number(draft, "io_times_read", reading.times);
    const char *name = reading.most ? reading.most->name : NULL;
    if (small >= SMALL_LEAST && reading.read.calls >= READS_LEAST) {
        sw__draft_advise(
            all, draft,
            "%.0f %% of the %llu reads moved fewer than 4 KiB: larger reads or "
            "files%s%s.",
            small * 100, (unsigned long long)reading.read.calls,
            name ? ", first of all " : "", name ? name : "");
    } else if (reading.times >= AGAIN_LEAST) {
        sw__draft_rule(draft, "RULE-13");
        sw__draft_advise(
            all, draft,
            "Files were read %.1f times over: keep what was read in memory or "
            "on a local disk.",
            reading.times);
    } else if (name) {
        sw__draft_advise(all, draft, "Most of the time went to %s.", name);
    }
}

double sw__loader_calls_share(const sw_findings *all,
                              const struct sw__loader_facts *facts)
{
    struct reading reading;
    const double made = facts->share.mean * (double)all->it.base_ns;
    return find_reading(all, &reading) && made > 0 ? (double)reading.ns / made : NAN;
}

/* Sums of the sections that have a phase by their name, and of the phase itself within steps. */
static sw_io_sum in_phase(const sw_findings *all, unsigned phase, unsigned operation)
{
    sw_io_sum sum = {0};
    const sw_io *io = sw_summary_io(all->it.summary);
    size_t count = 0, rows = 0;
    const sw_io_section *sections = io ? sw_io_sections(io, &count) : NULL;
    const sw_summary_section *names =
        sw_summary_sections(all->it.summary, SW_ROWS_FLAT, &rows);
    for (size_t i = 0; i < count; i++) {
        bool inside = sections[i].phase == phase;
        for (size_t k = 0; !inside && sections[i].section && k < rows; k++) {
            inside =
                names[k].phase == phase &&
                names[k].name_length == strlen(sections[i].section) &&
                memcmp(names[k].name, sections[i].section, names[k].name_length) == 0;
        }
        if (inside && sections[i].training) {
            add(&sum, &sections[i].sum[operation]);
        }
    }
    return sum;
}

void sw__checkpoint_calls(sw_findings *all, struct sw__draft *draft)
{
    if (!sw_summary_io(all->it.summary)) {
        return;
    }
    const sw_io_sum wrote = in_phase(all, SW_PHASE_CHECKPOINT, SW_IO_WRITE);
    const sw_io_sum synced = in_phase(all, SW_PHASE_CHECKPOINT, SW_IO_SYNC);
    sw__draft_number(draft, "written_mb", (double)wrote.bytes / 1e6);
    sw__draft_number(draft, "write_s", (double)wrote.ns / 1e9);
    sw__draft_number(draft, "sync_s", (double)synced.ns / 1e9);
    if ((double)synced.ns > 0.3 * (double)all->it.checkpoint_ns) {
        sw__draft_advise(
            all, draft,
            "fsync takes %.0f %% of it: once for the whole checkpoint, or on a "
            "faster disk.",
            100.0 * (double)synced.ns / (double)all->it.checkpoint_ns);
    }
}

/* What no finding tells. Times are compared with those of the steps. */
void sw__rules_io(sw_findings *all)
{
    const sw_io *io = sw_summary_io(all->it.summary);
    struct reading reading;
    if (!io || !all->it.count) {
        return;
    }
    const double base = (double)all->it.base_ns;
    const double small = find_reading(all, &reading) ? small_share(&reading) : NAN;
    const bool told = sw__has_draft(all, SW_FINDING_LOADER_IO);
    if (!told && small >= SMALL_LEAST && reading.read.calls >= READS_LEAST &&
        (double)reading.read.ns > REMARK_LEAST * base) {
        sw__findings_note(
            all,
            "%.0f %% of the %llu reads where batches are made moved fewer than 4 "
            "KiB; together they took %.1f s.",
            small * 100, (unsigned long long)reading.read.calls,
            (double)reading.read.ns / 1e9);
    }
    if (!told && reading.times >= AGAIN_LEAST &&
        (double)reading.ns > REMARK_LEAST * base) {
        sw__findings_note(
            all,
            "Files were read %.1f times over, in %.1f s: what fits into memory "
            "need not be read again.",
            reading.times, (double)reading.ns / 1e9);
    }
    sw_io_sum sync = {0};
    for (unsigned kind = 1; kind < SW_IO_KINDS; kind++) {
        add(&sync, sw_io_total(io, (enum sw_io_kind)kind, SW_IO_SYNC));
    }
    if ((double)sync.ns > REMARK_LEAST * base &&
        !sw__has_draft(all, SW_FINDING_CHECKPOINT)) {
        sw__findings_note(all, "fsync and its kin took %.1f s in %llu calls.",
                          (double)sync.ns / 1e9, (unsigned long long)sync.calls);
    }
}
