/* Calls on files and sockets in the text report: one line of sums, and the files that took most of the time. */
#include <stdio.h>
#include <string.h>

#include <stepwatch/export.h>
#include <stepwatch/io.h>

#include "export/report_parts.h"

#define ITEM 160
#define ITEMS 10

struct items {
    char text[ITEMS][ITEM];
    size_t count;
};

static char *item(struct items *items)
{
    return items->text[items->count < ITEMS - 1 ? items->count++ : ITEMS - 1];
}

static void flow(const struct sw__page *page, const char *title,
                 const struct items *items)
{
    const char *pointers[ITEMS];
    for (size_t i = 0; i < items->count; i++) {
        pointers[i] = items->text[i];
    }
    sw__page_styled(page, SW__BOLD, title);
    sw__page_flow(page, pointers, items->count, strlen(title));
}

static void duration(const struct sw__page *page, char out[24], uint64_t ns)
{
    sw_text_duration(out, (double)ns, !page->unicode);
}

/* "read 1.2 GB in 3,400 calls, 2.1 s". */
static void put_sum(const struct sw__page *page, struct items *items, const char *verb,
                    const sw_io_sum *sum, bool bytes)
{
    if (sum->calls == 0) {
        return;
    }
    char calls[32], size[24], taken[24];
    sw_text_count(calls, sum->calls);
    sw_text_bytes(size, sum->bytes);
    duration(page, taken, sum->ns);
    const char *one = sum->calls == 1 ? "call" : "calls";
    if (bytes) {
        snprintf(item(items), ITEM, "%s %s in %s %s, %s", verb, size, calls, one, taken);
    } else {
        snprintf(item(items), ITEM, "%s %s %s, %s", verb, calls,
                 sum->calls == 1 ? "time" : "times", taken);
    }
}

static void put_small(struct items *items, const sw_io_sum *sum)
{
    /* One in five, and enough of them to matter. */
    if (sum->calls >= 100 && sum->small >= sum->calls / 5) {
        snprintf(item(items), ITEM, "%.0f %% of reads below 4 KiB",
                 100.0 * (double)sum->small / (double)sum->calls);
    }
}

/* Files and folders together. */
static sw_io_sum files(const sw_io *io, enum sw_io_operation operation)
{
    sw_io_sum sum = *sw_io_total(io, SW_IO_KIND_FILE, operation);
    const sw_io_sum *more = sw_io_total(io, SW_IO_KIND_FOLDER, operation);
    sum.calls += more->calls;
    sum.bytes += more->bytes;
    sum.ns += more->ns;
    sum.small += more->small;
    return sum;
}

static void put_files(const struct sw__page *page, const sw_io *io)
{
    struct items items = {.count = 0};
    const sw_io_sum read = files(io, SW_IO_READ), wrote = files(io, SW_IO_WRITE),
                    opened = files(io, SW_IO_OPEN), synced = files(io, SW_IO_SYNC),
                    mapped = files(io, SW_IO_MAP);
    put_sum(page, &items, "read", &read, true);
    put_small(&items, &read);
    put_sum(page, &items, "written", &wrote, true);
    put_sum(page, &items, "opened", &opened, false);
    put_sum(page, &items, "synced", &synced, false);
    put_sum(page, &items, "mapped", &mapped, true);
    if (items.count > 0) {
        flow(page, "Files    ", &items);
    }
}

static void put_sockets(const struct sw__page *page, const sw_io *io)
{
    struct items items = {.count = 0};
    sw_io_sum in = *sw_io_total(io, SW_IO_KIND_SOCKET, SW_IO_RECEIVE);
    sw_io_sum out = *sw_io_total(io, SW_IO_KIND_SOCKET, SW_IO_SEND);
    const sw_io_sum *read = sw_io_total(io, SW_IO_KIND_SOCKET, SW_IO_READ);
    const sw_io_sum *wrote = sw_io_total(io, SW_IO_KIND_SOCKET, SW_IO_WRITE);
    in.calls += read->calls, in.bytes += read->bytes, in.ns += read->ns;
    out.calls += wrote->calls, out.bytes += wrote->bytes, out.ns += wrote->ns;
    put_sum(page, &items, "received", &in, true);
    put_sum(page, &items, "sent", &out, true);
    put_sum(page, &items, "connected", sw_io_total(io, SW_IO_KIND_SOCKET, SW_IO_CONNECT),
            false);
    put_sum(page, &items, "waited", sw_io_total(io, SW_IO_KIND_SOCKET, SW_IO_WAIT),
            false);
    if (items.count > 0) {
        flow(page, "Sockets  ", &items);
    }
}

/* Where in the training it was: phases of steps first, then what other processes did. */
static void put_places(const struct sw__page *page, const sw_io *io)
{
    enum { OUTSIDE = SW_PHASE_COUNT, OTHERS, PLACES };
    struct items items = {.count = 0};
    uint64_t ns[PLACES] = {0};
    bool steps = false;
    size_t count;
    const sw_io_section *sections = sw_io_sections(io, &count);
    for (size_t i = 0; i < count; i++) {
        const bool inside = sections[i].training && sections[i].phase != SW_PHASE_INHERIT;
        steps = steps || inside;
        ns[inside                 ? sections[i].phase
           : sections[i].training ? OUTSIDE
                                  : OTHERS] += sections[i].sum[0].ns;
    }
    for (unsigned i = 0; steps && i < PLACES; i++) {
        char taken[24];
        duration(page, taken, ns[i]);
        if (ns[i] >= 1000000) {
            snprintf(item(&items), ITEM, "%s %s",
                     i == OUTSIDE  ? "outside steps"
                     : i == OTHERS ? "other processes"
                                   : sw_phase_name(i),
                     taken);
        }
    }
    if (items.count > 0) {
        flow(page, "Time in  ", &items);
    }
}

/* The end of a path says more than its beginning. */
static void put_name(const struct sw__page *page, struct sw__cells *row,
                     const sw_io_thing *thing)
{
    const char *name = thing->name, *from = name;
    if (thing->kind == SW_IO_KIND_FILE || thing->kind == SW_IO_KIND_FOLDER) {
        size_t slashes = 0;
        for (const char *at = name + strlen(name); at > name && slashes < 2; at--) {
            slashes += *at == '/';
            from = slashes == 2 ? at : from;
        }
    }
    char cell[96];
    sw__report_cell(page, cell, sizeof cell, from);
    const char *dots = page->unicode ? "\xE2\x80\xA6" : "...";
    snprintf(row->label, sizeof row->label, "%s%s", from != name ? dots : "", cell);
}

static bool is_worth_a_row(const sw_io_thing *thing)
{
    return thing->kind == SW_IO_KIND_FILE || thing->kind == SW_IO_KIND_FOLDER ||
           thing->kind == SW_IO_KIND_SOCKET;
}

static void put_table(const struct sw__page *page, const sw_io *io, size_t top)
{
    struct sw__table table = {.title = "Files and peers",
                              .column_count = 7,
                              .column = {{"time", 9},
                                         {"read", 8},
                                         {"written", 6},
                                         {"reads", 5},
                                         {"small", 3},
                                         {"opens", 4},
                                         {"read again", 7}}};
    size_t count;
    const sw_io_thing *things = sw_io_things(io, &count);
    size_t shown = 0;
    for (size_t i = 0; i < count && shown < top; i++) {
        const sw_io_thing *thing = &things[i];
        if (!is_worth_a_row(thing)) {
            continue;
        }
        const sw_io_sum *in = &thing->sum[SW_IO_READ], *out = &thing->sum[SW_IO_WRITE];
        const uint64_t got = in->bytes + thing->sum[SW_IO_RECEIVE].bytes;
        const uint64_t gave = out->bytes + thing->sum[SW_IO_SEND].bytes;
        struct sw__cells *row = sw__table_row(&table);
        if (!row) {
            break;
        }
        put_name(page, row, thing);
        char text[24];
        duration(page, text, thing->sum[0].ns);
        snprintf(row->cell[0], SW__CELL, "%s", text);
        sw_text_bytes(row->cell[1], got);
        sw_text_bytes(row->cell[2], gave);
        sw_text_count(row->cell[3], in->calls + thing->sum[SW_IO_RECEIVE].calls);
        sw_text_count(row->cell[4], in->small + thing->sum[SW_IO_RECEIVE].small);
        sw_text_count(row->cell[5], thing->sum[SW_IO_OPEN].calls);
        snprintf(row->cell[6], SW__CELL, "-");
        if (thing->again != SW_UNKNOWN) {
            sw_text_bytes(row->cell[6], thing->again);
        }
        shown++;
    }
    if (shown > 0) {
        sw_write_text(page->writer, "\n");
        sw__table_print(&table, page);
    }
    sw__table_free(&table);
}

void sw__report_io(const struct sw__page *page, const sw_summary *summary, size_t top)
{
    const sw_io *io = sw_summary_io(summary);
    if (!io) {
        return;
    }
    sw_write_text(page->writer, "\n");
    put_files(page, io);
    put_sockets(page, io);
    put_places(page, io);
    put_table(page, io, top);
}
