/* Memory of the process, always kept: one row, made when recording starts and changed in place by the helper. */
#include "base/os.h"
#include "record/recorder.h"
#include <stepwatch/host.h>

/* Looking into control groups opens files. */
#define SW__ROOM_PERIOD ((uint64_t)2000 * 1000 * 1000)

static sw_row *sw__memory_row; /* NULL: none; in the session's memory */
static uint64_t sw__memory_room_at;

static void sw__memory_most(uint64_t *place, uint64_t value)
{
    if (value != UINT64_MAX && value > __atomic_load_n(place, __ATOMIC_RELAXED)) {
        __atomic_store_n(place, value, __ATOMIC_RELAXED);
    }
}

void sw__memory_look(bool dear)
{
    sw_row *row = sw__memory_row;
    if (!row) {
        return;
    }
    /* The kernel keeps the largest size itself. */
    const uint64_t resident = sw_host_resident(0);
    const uint64_t now = sw__os_now_ns();
    if (resident != UINT64_MAX) {
        __atomic_store_n(&row->value[1], resident, __ATOMIC_RELAXED);
        sw__memory_most(&row->value[2], resident);
    }
    if (dear || now >= sw__memory_room_at) {
        sw__memory_room_at = now + SW__ROOM_PERIOD;
        sw__memory_most(&row->value[2], sw_host_resident_peak());
        const uint64_t room = sw_host_memory_available();
        if (room < __atomic_load_n(&row->value[3], __ATOMIC_RELAXED)) {
            __atomic_store_n(&row->value[3], room, __ATOMIC_RELAXED);
        }
        sw__memory_most(&row->value[4], sw_host_swapped());
    }
}

void sw__memory_begin(void)
{
    const uint64_t resident = sw_host_resident(0);
    sw_row row = {.table = SW_TABLE_MEMORY,
                  .value = {resident == UINT64_MAX ? 0 : resident, 0, 0, UINT64_MAX, 0}};
    sw__memory_row = resident == UINT64_MAX ? NULL : sw__row_keep(&row);
    sw__memory_look(true);
}

void sw__memory_end(void)
{
    sw__memory_look(true);
    sw__memory_row = NULL;
}

void sw__memory_forget(void)
{
    sw__memory_row = NULL;
}
