/* The table of files and peers: calls on them, where those were watched, all processes of the run together. */
#include "table.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static int files_prepare(core_source *source, void **made, sw_error_info *info)
{
    (void)made; /* the summary is the source's own */
    return core_source_summary(source, info);
}

static const core_column files_columns[] = {
    {"name", CORE_NAME, false},
    {"kind", CORE_NAME, false},
    {"calls", CORE_INTEGER, false},
    {"ns", CORE_INTEGER, false},
    {"reads", CORE_INTEGER, false},
    {"read_bytes", CORE_INTEGER, false},
    {"read_ns", CORE_INTEGER, false},
    {"small_reads", CORE_INTEGER, false},
    {"writes", CORE_INTEGER, false},
    {"written_bytes", CORE_INTEGER, false},
    {"write_ns", CORE_INTEGER, false},
    {"opens", CORE_INTEGER, false},
    {"syncs", CORE_INTEGER, false},
    {"sync_ns", CORE_INTEGER, false},
    {"mapped_bytes", CORE_INTEGER, false},
    {"size_bytes", CORE_INTEGER, true},
    {"read_again_bytes", CORE_INTEGER, true},
    {"failed", CORE_INTEGER, false},
    {"processes", CORE_INTEGER, false},
};

static uint64_t files_count(const core_source *source)
{
    const sw_io *io = sw_summary_io(source->summary);
    size_t count = 0;
    if (io) {
        (void)sw_io_things(io, &count);
    }
    return count;
}

static int files_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    size_t count;
    const sw_io_thing *thing =
        sw_io_things(sw_summary_io(reader->source->summary), &count) + index;
    const sw_io_sum *read = &thing->sum[SW_IO_READ], *got = &thing->sum[SW_IO_RECEIVE];
    const sw_io_sum *wrote = &thing->sum[SW_IO_WRITE], *sent = &thing->sum[SW_IO_SEND];
    core_put_text(cell++, thing->name);
    core_put_text(cell++, sw_io_kind_name(thing->kind));
    core_put_integer(cell++, thing->sum[0].calls);
    core_put_integer(cell++, thing->sum[0].ns);
    core_put_integer(cell++, read->calls + got->calls);
    core_put_integer(cell++, read->bytes + got->bytes);
    core_put_integer(cell++, read->ns + got->ns);
    core_put_integer(cell++, read->small + got->small);
    core_put_integer(cell++, wrote->calls + sent->calls);
    core_put_integer(cell++, wrote->bytes + sent->bytes);
    core_put_integer(cell++, wrote->ns + sent->ns);
    core_put_integer(cell++, thing->sum[SW_IO_OPEN].calls);
    core_put_integer(cell++, thing->sum[SW_IO_SYNC].calls);
    core_put_integer(cell++, thing->sum[SW_IO_SYNC].ns);
    core_put_integer(cell++, thing->sum[SW_IO_MAP].bytes);
    core_put_integer(cell++, thing->size);
    core_put_integer(cell++, thing->again);
    core_put_integer(cell++, thing->failed);
    core_put_integer(cell++, thing->processes);
    return 0;
}

const core_table_kind core_table_files = {
    .name = "files",
    .columns = files_columns,
    .column_count = COUNT(files_columns),
    .prepare = files_prepare,
    .count = files_count,
    .at = files_at,
};
