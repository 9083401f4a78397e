/* Steps that are told later: for adapters of frameworks, which see thousands of short steps a second and must not cost them anything.
 *
 * To end a step and to begin the next one touches some eighty lines of the cache, which the computation between has driven out: one or two
 * microseconds. So a thread whose steps are watched in brief notes them instead: where each begins, when it waits for data, how
 * often it updates. The recorder makes steps of the notes when anything else is asked of it on that thread, and when there are many; all is as
 * if sw_step_next(unit | SW_STEP_BRIEF), sw_begin, sw_end and sw_update had been called at those moments. Notes lie in the trace's own
 * memory: who reads the trace of a process that runs, or was killed, knows them, too. */
#ifndef STEPWATCH_LATER_H
#define STEPWATCH_LATER_H

#include <stdbool.h>
#include <stdint.h>
#include <stepwatch/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A note. */
typedef struct sw_later_note {
    uint64_t begin;      /* tick at which a step ended and the next began; 0: none did */
    uint64_t wait_begin; /* a wait in it; 0: none */
    uint64_t wait_end;   /* 0: it still waits */
    uint32_t updates;
    uint32_t samples; /* that a sampler took, see sw_peek_thread */
} sw_later_note;

/* Where a thread notes its steps. The fields are for the functions below. Belongs to the recorder and to the thread that opened it; it
 * is there as long as that thread, and takes nothing any more once the recording has ended. */
typedef struct sw_later {
    uint32_t *busy;       /* 0 while the thread is within the recorder */
    const uint32_t *gate; /* of the section of the waits */
    uint32_t idle, open;  /* what these are while nothing has changed */
    uint32_t count, room; /* notes */
    uint64_t
        due; /* from here on a step is told at once, for more is to be done than that */
    sw_later_note *note;
    uint32_t *shown; /* their count, for who reads the trace */
} sw_later;

/* From here on steps of the calling thread may be noted, in the default domain; what is open is a step that is watched in brief. `wait`: the
 * section of its waits, `unit` as in sw_step_next. NULL: they may not, for instance because each has to be told what it used. Opened
 * anew for another section, or after sw_later_close. */
SW_API sw_later *sw_later_open(sw_section *wait, int unit);
/* Makes steps of what is noted, and lets nothing more be. */
SW_API void sw_later_close(void);

#if defined(__GNUC__)
#define SW_LATER_PUT(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

/* As sections do: within the recorder, then a look whether everything is as it was. */
static inline bool sw_later_enter(sw_later *later, uint32_t *before)
{
    *before = __atomic_load_n(later->busy, __ATOMIC_RELAXED);
    SW_LATER_PUT(*later->busy, 0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return *before == later->idle &&
           __atomic_load_n(later->gate, __ATOMIC_RELAXED) == later->open;
}
static inline void sw_later_leave(sw_later *later, uint32_t before)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(later->busy, before, __ATOMIC_RELEASE);
}
static inline void sw_later_put(sw_later *later, uint64_t begin, uint64_t wait)
{
    sw_later_note *note = &later->note[later->count];
    SW_LATER_PUT(note->begin, begin);
    SW_LATER_PUT(note->wait_begin, wait);
    SW_LATER_PUT(note->wait_end, 0);
    SW_LATER_PUT(note->updates, 0);
    SW_LATER_PUT(note->samples, 0);
    __atomic_store_n(later->shown, ++later->count, __ATOMIC_RELEASE);
}

/* The open step ends at the tick `now`, and the next begins; `waits`: for data, up to sw_later_waited. False: nothing was noted,
 * tell the recorder. */
static inline bool sw_later_step(sw_later *later, uint64_t now, bool waits)
{
    uint32_t before;
    bool noted = false;
    if (later->count >= later->room || now >= later->due) {
        return false;
    }
    if (sw_later_enter(later, &before)) {
        sw_later_put(later, now, waits ? now : 0);
        noted = true;
    }
    sw_later_leave(later, before);
    return noted;
}
/* The open step waits for data. */
static inline bool sw_later_wait(sw_later *later, uint64_t now)
{
    uint32_t before;
    bool noted = false;
    if (later->count >= later->room) {
        return false;
    }
    if (sw_later_enter(later, &before)) {
        sw_later_note *last =
            later->count > 0 ? &later->note[later->count - 1] : (sw_later_note *)0;
        if (last && last->wait_begin == 0) {
            SW_LATER_PUT(last->wait_end, 0);
            SW_LATER_PUT(last->wait_begin, now);
        } else {
            sw_later_put(later, 0, now);
        }
        noted = true;
    }
    sw_later_leave(later, before);
    return noted;
}
/* The wait is over. False: the recorder was told of it meanwhile, sw_end ends it. */
static inline bool sw_later_waited(sw_later *later, uint64_t now)
{
    uint32_t before;
    bool noted = false;
    if (later->count == 0) {
        return false;
    }
    if (sw_later_enter(later, &before) && later->count > 0) {
        SW_LATER_PUT(later->note[later->count - 1].wait_end, now);
        noted = true;
    }
    sw_later_leave(later, before);
    return noted;
}
/* As sw_update. */
static inline bool sw_later_update(sw_later *later)
{
    uint32_t before;
    bool noted = false;
    if (later->count == 0) {
        return false;
    }
    if (sw_later_enter(later, &before) && later->count > 0) {
        sw_later_note *note = &later->note[later->count - 1];
        SW_LATER_PUT(note->updates, note->updates + 1);
        noted = true;
    }
    sw_later_leave(later, before);
    return noted;
}
#undef SW_LATER_PUT
#endif

#ifdef __cplusplus
}
#endif

#endif
