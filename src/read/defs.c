/* Definitions: names, domains and facts. */
#include <stdlib.h>
#include <string.h>

#include "read/trace_internal.h"

/* What one walk over all definitions does with an entry. */
struct visitor {
    sw_trace *trace;
    bool counting; /* first walk: sizes of the tables; second: fill them */
    uint32_t name_limit;
    uint32_t domain_limit;
    size_t facts;
    size_t bad;
};

static int visit_name(struct visitor *v, const uint8_t *entry, uint32_t size)
{
    struct sw__fmt_name name;
    if (size < sizeof name) {
        v->bad += v->counting;
        return SW_OK;
    }
    memcpy(&name, entry, sizeof name);
    bool domain = name.head.kind == SW__DEF_DOMAIN;
    if (name.length > size - sizeof name ||
        name.id >= (domain ? UINT16_MAX + 1u : SW__READ_NAME_MAX)) {
        v->bad += v->counting;
        return SW_OK;
    }
    uint32_t *limit = domain ? &v->domain_limit : &v->name_limit;
    if (v->counting) {
        *limit = name.id >= *limit ? name.id + 1 : *limit;
        return SW_OK;
    }
    sw_trace *trace = v->trace;
    if (name.id >= *limit ||
        (domain ? trace->domains[name.id] != NULL : trace->names[name.id] != NULL)) {
        return SW_OK; /* the first definition counts */
    }
    const char *text =
        sw__arena_copy(trace->arena, (const char *)entry + sizeof name, name.length);
    if (!text) {
        return SW_ENOMEM;
    }
    if (domain) {
        trace->domains[name.id] = text;
        return SW_OK;
    }
    sw_trace_name *made =
        sw__arena_take(trace->arena, sizeof *made, _Alignof(sw_trace_name));
    if (!made) {
        return SW_ENOMEM;
    }
    *made = (sw_trace_name){.text = text,
                            .length = name.length,
                            .use = name.use,
                            .domain = name.domain,
                            .phase = name.phase < SW_PHASE_SLOTS ? name.phase
                                                                 : SW_PHASE_INHERIT};
    trace->names[name.id] = made;
    return SW_OK;
}

static int visit_fact(struct visitor *v, const uint8_t *entry, uint32_t size)
{
    struct sw__fmt_fact fact;
    sw_trace *trace = v->trace;
    if (size < sizeof fact) {
        v->bad += v->counting;
        return SW_OK;
    }
    memcpy(&fact, entry, sizeof fact);
    uint32_t room = size - (uint32_t)sizeof fact;
    if (fact.key_length > room || fact.value_length > room - fact.key_length) {
        v->bad += v->counting;
        return SW_OK;
    }
    if (v->counting) {
        v->facts++;
        return SW_OK;
    }
    if (trace->fact_count == v->facts) {
        return SW_OK;
    }
    const char *text = (const char *)entry + sizeof fact;
    struct sw__fact *made = &trace->facts[trace->fact_count];
    made->key = sw__arena_copy(trace->arena, text, fact.key_length);
    made->value = sw__arena_copy(trace->arena, text + fact.key_length, fact.value_length);
    if (!made->key || !made->value) {
        return SW_ENOMEM;
    }
    trace->fact_count++;
    return SW_OK;
}

static int visit_block(struct visitor *v, const uint8_t *bytes, size_t length)
{
    struct sw__fmt_def head;
    while (length >= sizeof head) {
        memcpy(&head, bytes, sizeof head);
        if (head.size < sizeof head || head.size % 8 != 0 || head.size > length) {
            v->bad += v->counting;
            return SW_OK;
        }
        int result = SW_OK;
        if (head.kind == SW__DEF_NAME || head.kind == SW__DEF_DOMAIN) {
            result = visit_name(v, bytes, head.size);
        } else if (head.kind == SW__DEF_FACT) {
            result = visit_fact(v, bytes, head.size);
        }
        if (result) {
            return result;
        }
        bytes += head.size;
        length -= head.size;
    }
    return SW_OK;
}

static int compare_sequences(const void *left, const void *right)
{
    const struct sw__block *a = *(const struct sw__block *const *)left;
    const struct sw__block *b = *(const struct sw__block *const *)right;
    if (a->sequence != b->sequence) {
        return a->sequence < b->sequence ? -1 : 1;
    }
    return a->address < b->address ? -1 : a->address > b->address;
}

static int visit_all(struct visitor *v, const struct sw__block *const *blocks,
                     size_t count, struct sw__scratch *scratch)
{
    for (size_t i = 0; i < count; i++) {
        size_t length;
        if (!sw__scratch_load(scratch, v->trace, blocks[i], &length)) {
            return SW_ENOMEM;
        }
        int result = visit_block(v, scratch->data, length);
        if (result) {
            return result;
        }
    }
    return SW_OK;
}

static void *take_table(sw_trace *trace, size_t count, size_t size)
{
    void *table = sw__arena_take(trace->arena, count * size + 1, 16);
    if (table) {
        memset(table, 0, count * size);
    }
    return table;
}

int sw__defs_load(sw_trace *trace)
{
    struct visitor v = {.trace = trace, .counting = true};
    struct sw__scratch scratch = {0};
    size_t count = 0;
    int result = SW_ENOMEM;
    const struct sw__block **blocks =
        sw__alloc_zero(trace->state_count, sizeof(struct sw__block *));
    if (!blocks) {
        goto out;
    }
    for (size_t i = 0; i < trace->state_count; i++) {
        if (trace->blocks[i].kind == SW__BLOCK_DEFS) {
            blocks[count++] = &trace->blocks[i];
        }
    }
    if (count > 1) {
        qsort(blocks, count, sizeof(struct sw__block *), compare_sequences);
    }
    result = visit_all(&v, blocks, count, &scratch);
    if (result) {
        goto out;
    }
    trace->names = take_table(trace, v.name_limit, sizeof(sw_trace_name *));
    trace->domains = take_table(trace, v.domain_limit, sizeof *trace->domains);
    trace->facts = take_table(trace, v.facts, sizeof *trace->facts);
    if (!trace->names || !trace->domains || !trace->facts) {
        result = SW_ENOMEM;
        goto out;
    }
    trace->name_limit = v.name_limit;
    trace->domain_limit = v.domain_limit;
    v.counting = false;
    result = visit_all(&v, blocks, count, &scratch);
    if (v.bad) {
        sw__trace_damage(trace, "%zu definitions cannot be read: some names are unknown.",
                         v.bad);
    }
out:
    sw__free(scratch.data);
    sw__free(blocks);
    return result;
}

const sw_trace_name *sw_trace_get_name(const sw_trace *trace, uint32_t id)
{
    return id < trace->name_limit ? trace->names[id] : NULL;
}

uint32_t sw_trace_name_limit(const sw_trace *trace)
{
    return trace->name_limit;
}

const char *sw_trace_domain_name(const sw_trace *trace, uint32_t domain)
{
    const char *name = domain < trace->domain_limit ? trace->domains[domain] : NULL;
    return name ? name : "";
}

const char *sw_trace_fact(const sw_trace *trace, const char *key)
{
    /* A fact that was given again counts in its newer form. */
    for (size_t i = trace->fact_count; i-- > 0;) {
        if (strcmp(trace->facts[i].key, key) == 0) {
            return trace->facts[i].value;
        }
    }
    return NULL;
}

bool sw_trace_fact_at(const sw_trace *trace, size_t index, const char **key,
                      const char **value)
{
    if (index >= trace->fact_count) {
        return false;
    }
    *key = trace->facts[index].key;
    *value = trace->facts[index].value;
    return true;
}
