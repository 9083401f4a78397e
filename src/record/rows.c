/* Rows of tables: totals that watchers keep in the trace. They lie in state blocks, so they outlive a kill and are never
 * given up for events. */
#include "record/recorder.h"
#include <string.h>

#define SW__ROWS_BLOCK 16384u

/* Rows may use what events leave, and half of what is set aside for state: names and call trees need the rest. */
static bool sw__rows_may_grow(const struct sw__hot *hot)
{
    return atomic_load_explicit(&hot->next, memory_order_relaxed) + SW__ROWS_BLOCK +
               hot->reserve / 2 <=
           hot->limit;
}

/* A place for a new row, or NULL. session.lock held. */
static sw_row *sw__row_room(struct sw__session *session)
{
    struct sw__fmt_block *block = session->rows_block;
    uint32_t used = block ? atomic_load_explicit(&block->used, memory_order_relaxed) : 0;
    if (!block || sizeof(*block) + used + sizeof(sw_row) > block->size) {
        block = sw__rows_may_grow(&session->hot)
                    ? sw__mirror_take(&session->mirror, SW__BLOCK_ROWS, SW__ROWS_BLOCK)
                    : NULL;
        session->rows_block = block ? block : session->rows_block;
        used = 0;
    }
    return block ? (sw_row *)(void *)((uint8_t *)(block + 1) + used) : NULL;
}

/* session.lock held; the address of the new row / 64, 0 when there is no room. */
static uint32_t sw__row_new(struct sw__session *session, sw_row *row)
{
    sw_row *place = sw__row_room(session);
    if (!place) {
        sw__loss_note("no room for the tables of profiles");
        return 0;
    }
    row->index = session->rows_done[row->table]++;
    memcpy(place, row, sizeof(*row));
    /* A reader of the memory sees the row once it counts. */
    atomic_fetch_add_explicit(&session->rows_block->used, (uint32_t)sizeof(*row),
                              memory_order_release);
    return (uint32_t)((uint64_t)((uint8_t *)place - session->hot.base) / sizeof(*row));
}

sw_row *sw__row_keep(sw_row *row)
{
    const uint32_t reference = sw__row_new(&sw__session, row);
    return reference ? (sw_row *)(void *)(sw__session.hot.base +
                                          (uint64_t)reference * sizeof(*row))
                     : NULL;
}

static void sw__row_change(struct sw__session *session, uint32_t reference, sw_row *row)
{
    sw_row *place =
        (sw_row *)(void *)(session->hot.base + (uint64_t)reference * sizeof(*row));
    row->index = place->index;
    __atomic_store_n(&place->flags, row->flags, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 5; i++) {
        __atomic_store_n(&place->value[i], row->value[i], __ATOMIC_RELAXED);
    }
}

uint64_t sw_row_put(uint64_t handle, sw_row *row)
{
    struct sw__session *session = &sw__session;
    if (!row || row->table >= SW_TABLES || sw__holding || !sw__session_ready()) {
        return 0;
    }
    /* The lock keeps the session and its memory there. */
    sw__lock(&session->lock);
    uint32_t reference = 0;
    const uint32_t number = atomic_load(&session->generation);
    if (atomic_load(&session->state) == SW__SESSION_ON) {
        reference = (uint32_t)handle;
        if (reference && (uint32_t)(handle >> 32) == number) {
            sw__row_change(session, reference, row);
        } else {
            reference = sw__row_new(session, row);
        }
    }
    sw__unlock(&session->lock);
    return reference ? (uint64_t)number << 32 | reference : 0;
}

uint32_t sw_recording_number(void)
{
    return sw_is_recording() ? atomic_load(&sw__session.generation) : 0;
}
