/* Names: sections, counters and plain texts by number, domains, families, and their definitions in the
 * file. Names outlive sessions and forks; each session writes the definitions it needs anew. */
#include "base/intern.h"
#include "base/memory.h"
#include "record/recorder.h"
#include <string.h>

#define SW__NAME_LONGEST 1000u
#define SW__DIRECTORY_PAGE 1024u
#define SW__DIRECTORY_PAGES (SW__NAMES_HARD / SW__DIRECTORY_PAGE + 1)

/* What interning distinguishes names by, before the text. */
struct sw__name_key {
    uint16_t domain;
    uint8_t phase;
    uint8_t use;
    char text[SW__NAME_LONGEST];
};
#define SW__KEY_HEAD offsetof(struct sw__name_key, text)

static struct {
    pthread_mutex_t lock;
    sw__intern *table;
    struct sw_section *_Atomic *_Atomic directory[SW__DIRECTORY_PAGES];
    struct sw_domain domains[SW__DOMAINS];
    _Atomic uint32_t domain_count;
} sw__names = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Stands in when there is no memory for a name: never recorded. */
static struct sw_section sw__void_section = {
    .text = "(none)", .length = 6, .phase = SW_PHASE_INHERIT, .use = SW__NAME_SECTION};

struct sw_section *sw__section_by_id(uint32_t id)
{
    uint32_t page = id / SW__DIRECTORY_PAGE;
    if (page >= SW__DIRECTORY_PAGES) {
        return NULL;
    }
    struct sw_section *_Atomic *entries =
        atomic_load_explicit(&sw__names.directory[page], memory_order_acquire);
    return entries ? atomic_load_explicit(&entries[id % SW__DIRECTORY_PAGE],
                                          memory_order_acquire)
                   : NULL;
}

static bool sw__directory_put(uint32_t id, struct sw_section *section)
{
    uint32_t page = id / SW__DIRECTORY_PAGE;
    struct sw_section *_Atomic *entries =
        atomic_load_explicit(&sw__names.directory[page], memory_order_relaxed);
    if (!entries) {
        entries = sw__alloc_zero(SW__DIRECTORY_PAGE, sizeof(*entries));
        if (!entries) {
            return false;
        }
        atomic_store_explicit(&sw__names.directory[page], entries, memory_order_release);
    }
    atomic_store_explicit(&entries[id % SW__DIRECTORY_PAGE], section,
                          memory_order_release);
    return true;
}

struct sw_domain *sw__domain_at(uint16_t index)
{
    return &sw__names.domains[index];
}

/* The gate a section of this domain has now. names.lock held. */
static uint32_t sw__gate_now(const struct sw_domain *domain)
{
    uint32_t state = atomic_load(&sw__session.state);
    if (!atomic_load(&domain->enabled)) {
        return 0;
    }
    if (state == SW__SESSION_ON) {
        return atomic_load(&domain->gate);
    }
    /* The first record of such a process starts its session. */
    return state == SW__SESSION_FORKED ||
                   (state == SW__SESSION_NEVER && sw__session_lazy())
               ? UINT32_MAX
               : 0;
}

/* Appends an entry of `head` and up to two texts to the definitions. names.lock held, or no other
 * thread yet. */
static bool sw__define(struct sw__fmt_def *head, size_t head_size, const char *a,
                       size_t a_length, const char *b, size_t b_length)
{
    struct sw__session *session = &sw__session;
    size_t size = (head_size + a_length + b_length + 7) / 8 * 8;
    struct sw__fmt_block *block = session->defs_block;
    uint32_t used = block ? atomic_load_explicit(&block->used, memory_order_relaxed) : 0;
    if (size > SW__DEFS_BLOCK - sizeof(*block)) {
        return false;
    }
    if (!block || sizeof(*block) + used + size > block->size) {
        block = sw__mirror_take(&session->mirror, SW__BLOCK_DEFS, SW__DEFS_BLOCK);
        if (!block) {
            return false;
        }
        session->defs_block = block;
        used = 0;
    }
    uint8_t *at = (uint8_t *)(block + 1) + used;
    head->size = (uint32_t)size;
    memcpy(at, head, head_size);
    memcpy(at + head_size, a, a_length);
    memcpy(at + head_size + a_length, b, b_length);
    atomic_store_explicit(&block->used, used + (uint32_t)size, memory_order_release);
    return true;
}

static bool sw__define_name(unsigned kind, uint32_t id, const struct sw_section *section)
{
    struct sw__fmt_name name = {.head = {.kind = (uint16_t)kind},
                                .id = id,
                                .use = section->use,
                                .domain = section->domain,
                                .phase = section->phase,
                                .length = section->length};
    return sw__define(&name.head, sizeof(name), section->text, section->length, "", 0);
}

void sw__fact_put(void *arg, const char *key, const char *value)
{
    (void)arg;
    size_t key_length = strnlen(key, 200);
    size_t value_length = strnlen(value, 12000);
    struct sw__fmt_fact fact = {.head = {.kind = SW__DEF_FACT},
                                .key_length = (uint32_t)key_length,
                                .value_length = (uint32_t)value_length};
    (void)sw__define(&fact.head, sizeof(fact), key, key_length, value, value_length);
}

void sw__names_fact(const char *key, const char *value)
{
    sw__lock(&sw__names.lock);
    sw__fact_put(NULL, key, value);
    sw__unlock(&sw__names.lock);
}

/* Writes what this session's file does not know yet. names.lock held. */
static bool sw__define_missing(void)
{
    struct sw__session *session = &sw__session;
    uint32_t domains = atomic_load(&sw__names.domain_count);
    for (; session->domains_done < domains; session->domains_done++) {
        const struct sw_domain *domain = &sw__names.domains[session->domains_done];
        struct sw_section text = {.text = domain->name,
                                  .length = (uint32_t)strlen(domain->name),
                                  .domain = domain->index,
                                  .phase = SW_PHASE_INHERIT};
        if (!sw__define_name(SW__DEF_DOMAIN, domain->index, &text)) {
            return false;
        }
    }
    uint32_t count = sw__names.table ? sw__intern_count(sw__names.table) : 0;
    for (; session->defs_done < count; session->defs_done++) {
        uint32_t id = session->defs_done + 1;
        const struct sw_section *section = sw__section_by_id(id);
        if (section && !sw__define_name(SW__DEF_NAME, id, section)) {
            sw__loss_note("no room for names");
            return false;
        }
    }
    return true;
}

bool sw__names_define(void)
{
    sw__lock(&sw__names.lock);
    bool done = sw__define_missing();
    sw__unlock(&sw__names.lock);
    return done;
}

static struct sw_section *sw__section_new(uint32_t id, const struct sw__name_key *key,
                                          size_t length)
{
    struct sw_section *section = sw__alloc_zero(1, sizeof(*section));
    if (!section) {
        return NULL;
    }
    struct sw_domain *domain = &sw__names.domains[key->domain];
    const char *stored = sw__intern_text(sw__names.table, id, NULL);
    section->id = id;
    section->domain = key->domain;
    section->phase = key->phase;
    section->use = key->use;
    section->length = (uint32_t)length;
    section->text = stored + SW__KEY_HEAD;
    const sw_record head = {
        .kind = SW_RECORD_SPAN, .units = 1, .flags = SW_RECORD_INTERVAL, .id = id};
    memcpy(&section->head, &head, sizeof(section->head));
    atomic_store(&section->gate, sw__gate_now(domain));
    if (!sw__directory_put(id, section)) {
        sw__free(section);
        return NULL;
    }
    section->next = domain->sections;
    domain->sections = section;
    return section;
}

static struct sw_domain *sw__domain_new(const char *name);
static void sw__domain_switch(struct sw_domain *domain, bool open);

/* The section of a key, made if it is new and below `limit`. names.lock held. */
static struct sw_section *sw__name_put(const struct sw__name_key *key, size_t length,
                                       uint32_t limit)
{
    int fresh = 0;
    uint32_t id = sw__intern_find(sw__names.table, key, SW__KEY_HEAD + length);
    if (!id && sw__intern_count(sw__names.table) < limit) {
        id = sw__intern_put(sw__names.table, key, SW__KEY_HEAD + length, &fresh);
    }
    if (!id) {
        return NULL;
    }
    struct sw_section *section = sw__section_by_id(id);
    if (!section) {
        section = sw__section_new(id, key, length);
    }
    if (section && atomic_load(&sw__session.state) == SW__SESSION_ON) {
        (void)sw__define_missing();
    }
    return section;
}

/* Makes the table and the default domain. names.lock held. */
static bool sw__names_begin(void)
{
    if (!sw__names.table) {
        __atomic_store_n(&sw__names.table, sw__intern_create(SW__NAMES_HARD),
                         __ATOMIC_RELEASE);
    }
    return sw__names.table &&
           (atomic_load(&sw__names.domain_count) || sw__domain_new("") != NULL);
}

size_t sw_name_family(const char *name, size_t length, char *out)
{
    return sw__name_family(name, length, out);
}

static struct sw_section *sw__family_of(const struct sw__name_key *key, size_t length)
{
    struct sw__name_key family = {
        .domain = key->domain, .phase = key->phase, .use = key->use};
    size_t shorter = sw__name_family(key->text, length, family.text);
    struct sw_section *section = NULL;
    if (shorter) {
        section = sw__name_put(&family, shorter, SW__NAMES_HARD - SW__DOMAINS);
    }
    return section ? section : sw__names.domains[key->domain].more;
}

static void sw__key_fill(struct sw__name_key *key, uint16_t domain, const char *text,
                         size_t length, int phase, unsigned use)
{
    key->domain = domain;
    key->phase =
        (uint8_t)(phase >= 0 && phase < SW_PHASE_COUNT ? phase : SW_PHASE_INHERIT);
    key->use = (uint8_t)use;
    memcpy(key->text, text, length);
}

struct sw_section *sw__name_get(uint16_t domain, const char *text, size_t length,
                                int phase, unsigned use)
{
    struct sw__name_key key;
    struct sw_section *section = NULL;
    length = length > SW__NAME_LONGEST ? SW__NAME_LONGEST : length;
    sw__key_fill(&key, domain, text, length, phase, use);
    sw__intern *table = __atomic_load_n(&sw__names.table, __ATOMIC_ACQUIRE);
    uint32_t id = table ? sw__intern_find(table, &key, SW__KEY_HEAD + length) : 0;
    section = id ? sw__section_by_id(id) : NULL;
    if (section) {
        return section;
    }
    if (sw__holding) {
        return &sw__void_section; /* A signal handler with a new name, at the wrong moment. */
    }
    sw__lock(&sw__names.lock);
    if (sw__names_begin()) {
        section = sw__name_put(&key, length, SW__NAMES_MOST);
        if (!section) {
            section = sw__family_of(&key, length);
            sw__total_add(SW__TOTAL_NAMES_FOLDED, 1);
        }
    }
    sw__unlock(&sw__names.lock);
    return section ? section : &sw__void_section;
}

struct sw_section *sw__section_family(struct sw_section *section)
{
    struct sw_section *family =
        atomic_load_explicit(&section->family, memory_order_acquire);
    if (family) {
        return family;
    }
    struct sw__name_key key;
    if (sw__holding) {
        return sw__section_more(section->domain);
    }
    sw__key_fill(&key, section->domain, section->text, section->length, section->phase,
                 section->use);
    sw__lock(&sw__names.lock);
    family = sw__family_of(&key, section->length);
    atomic_store_explicit(&section->family, family, memory_order_release);
    sw__unlock(&sw__names.lock);
    return family;
}

struct sw_section *sw__section_more(uint16_t domain)
{
    return sw__names.domains[domain].more;
}

/* names.lock held. */
static struct sw_domain *sw__domain_new(const char *name)
{
    uint32_t index = atomic_load(&sw__names.domain_count);
    if (index == SW__DOMAINS) {
        return NULL;
    }
    struct sw_domain *domain = &sw__names.domains[index];
    struct sw__name_key key;
    domain->index = (uint16_t)index;
    domain->name = sw__strndup(name, strnlen(name, SW__NAME_LONGEST));
    atomic_store(&domain->enabled, true);
    atomic_store(&domain->epoch, UINT32_MAX);
    if (atomic_load(&sw__session.state) == SW__SESSION_ON) {
        sw__domain_switch(domain, true);
    }
    sw__key_fill(&key, domain->index, "(more)", 6, SW_PHASE_INHERIT, SW__NAME_SECTION);
    domain->more = domain->name ? sw__name_put(&key, 6, SW__NAMES_HARD) : NULL;
    if (!domain->more) {
        sw__free((char *)(uintptr_t)domain->name);
        domain->name = NULL;
        return NULL;
    }
    atomic_store(&sw__names.domain_count, index + 1);
    return domain;
}

sw_domain *sw_domain_get(const char *name)
{
    struct sw_domain *found = NULL;
    if (!name) {
        name = "";
    }
    sw__lock(&sw__names.lock);
    if (sw__names_begin()) {
        uint32_t count = atomic_load(&sw__names.domain_count);
        for (uint32_t i = 0; i < count && !found; i++) {
            if (strcmp(sw__names.domains[i].name, name) == 0) {
                found = &sw__names.domains[i];
            }
        }
        found = found ? found : sw__domain_new(name);
        if (found && atomic_load(&sw__session.state) == SW__SESSION_ON) {
            (void)sw__define_missing();
        }
    }
    sw__unlock(&sw__names.lock);
    return found;
}

/* Opens the gates of a domain with a number of their own, or closes them. names.lock held. */
static void sw__domain_switch(struct sw_domain *domain, bool open)
{
    static uint32_t last;
    uint32_t gate = 0;
    if (open && atomic_load(&domain->enabled)) {
        last = last + 1 < SW__GATE_WATCHED ? last + 1 : 1;
        gate = last | (domain->index ? SW__GATE_DOMAIN : 0);
    }
    atomic_store(&domain->gate, gate);
    for (struct sw_section *at = domain->sections; at; at = at->next) {
        atomic_store_explicit(&at->gate, gate, memory_order_relaxed);
    }
}

void sw_domain_enable(sw_domain *domain, bool on)
{
    domain = domain ? domain : sw_domain_get("");
    if (!domain) {
        return;
    }
    sw__lock(&sw__names.lock);
    if (atomic_exchange(&domain->enabled, on) != on) {
        if (atomic_load(&sw__session.state) == SW__SESSION_ON) {
            sw__domain_switch(domain, on);
        } else {
            for (struct sw_section *at = domain->sections; at; at = at->next) {
                atomic_store_explicit(&at->gate, sw__gate_now(domain),
                                      memory_order_relaxed);
            }
        }
    }
    sw__unlock(&sw__names.lock);
}

void sw__names_open_gates(bool open)
{
    sw__lock(&sw__names.lock);
    uint32_t count = atomic_load(&sw__names.domain_count);
    for (uint32_t i = 0; i < count; i++) {
        sw__domain_switch(&sw__names.domains[i], open);
    }
    sw__unlock(&sw__names.lock);
}

void sw__names_restart_steps(void)
{
    for (uint32_t i = 0; i < SW__DOMAINS; i++) {
        atomic_store(&sw__names.domains[i].next_step, 0);
        atomic_store(&sw__names.domains[i].epoch, UINT32_MAX);
    }
}

void sw__names_before_fork(void)
{
    sw__lock(&sw__names.lock);
}

void sw__names_after_fork(bool child)
{
    if (child) {
        pthread_mutex_init(&sw__names.lock, NULL);
        if (sw__names.table) {
            sw__intern_after_fork(sw__names.table);
        }
    } else {
        sw__unlock(&sw__names.lock);
    }
}

sw_section *sw_domain_section(sw_domain *domain, const char *name, size_t length,
                              int phase)
{
    return sw__name_get(domain ? domain->index : 0, name ? name : "", name ? length : 0,
                        phase, SW__NAME_SECTION);
}

sw_section *sw_section_get_n(const char *name, size_t length, int phase)
{
    return sw_domain_section(NULL, name, length, phase);
}

sw_section *sw_section_get(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    return sw_domain_section(NULL, name, length,
                             name ? sw_phase_of_name(name, length) : SW_PHASE_INHERIT);
}

uint32_t sw_name(const char *text, size_t length)
{
    if (!text || !sw__session_ready()) {
        return 0;
    }
    return sw__name_get(0, text, length, SW_PHASE_INHERIT, SW__NAME_TEXT)->id;
}
