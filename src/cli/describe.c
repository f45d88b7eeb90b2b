/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/describe.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/keys.h"
#include "engine/ping.h"
#include "report/figure.h"
#include "report/grid.h"
#include "result/environment.h"
#include "result/fields.h"
#include "result/json.h"
#include "result/view.h"
#include "target/reach.h"

#define PROBE_PINGS 10

static json_t *answer(enum answer a) {
    return a == ANSWER_UNKNOWN ? json_null() : json_boolean(a == ANSWER_YES);
}

static const char *kind_name(enum object_kind kind) {
    static const char *const names[] = {"file", "LUN", "device", "null"};
    return names[kind];
}

static json_t *identities(const struct facts *f) {
    json_t *j = json_array();
    for (unsigned i = 0; j && i < FACTS_IDENTITIES; i++)
        if (f->identity[i][0]) json_array_append_new(j, json_of_text(f->identity[i]));
    return j;
}

static json_t *warnings(const struct kv *kv) {
    json_t *j = json_array();
    for (size_t i = 0; j && i < kv->n; i++)
        if (kv->items[i].type == KV_TEXT)
            json_array_append_new(j, json_pack("{s:o, s:o}", "code", json_of_text(kv->items[i].key), "text",
                                               json_of_text(kv->items[i].text)));
    return j;
}

static json_t *member(const struct member *m) {
    const struct facts *f = &m->facts;
    struct fields j = fields_new();
    fields_text(&j, "url", m->url);
    fields_bool(&j, "exists", f->exists);
    fields_bool(&j, "created", m->created);
    fields_text(&j, "kind", kind_name(f->kind));
    fields_word(&j, "summary", f->summary);
    fields_word(&j, "identity", f->identity[0]);
    fields_put(&j, "identities", identities(f));
    fields_count(&j, "size", f->exists ? f->size : UINT64_MAX);
    fields_count(&j, "allocated", f->allocated);
    fields_count(&j, "block", f->block);
    fields_count(&j, "mem_align", f->mem_align);
    fields_count(&j, "max_io", f->max_io);
    fields_count(&j, "max_depth", f->max_depth ? f->max_depth : UINT64_MAX);
    fields_bool(&j, "read_only", f->read_only);
    fields_put(&j, "fua", answer(f->dpofua));
    fields_put(&j, "volatile_cache", answer(f->volatile_cache));
    fields_bool(&j, "can_flush", f->can_flush);
    fields_word(&j, "in_use", f->in_use);
    fields_count(&j, "fs_free", f->fs_total ? f->fs_free : UINT64_MAX);
    fields_count(&j, "fs_total", f->fs_total ? f->fs_total : UINT64_MAX);
    fields_put(&j, "keys", keys_json(m->backend->options, m->conf, m->backend->conf_size));
    fields_put(&j, "negotiated", json_of_kv(&f->negotiated));
    return fields_end(&j);
}

static void add_warnings(json_t *list, const struct kv *kv) {
    json_t *own = warnings(kv), *w;
    size_t i;
    json_array_foreach(own, i, w) json_array_append(list, w);
    json_decref(own);
}

/* The kinds that were answered, on the idle target; null where there is nothing to ask. */
static json_t *pings(const struct ping_idle *idle) {
    if (!idle->kinds) return json_null();
    struct fields j = fields_new(), kinds = fields_new();
    for (unsigned i = 0; i < idle->kinds; i++) {
        const struct record_ping *p = &idle->ping[i];
        if (!p->idle_n) continue;
        struct fields k = fields_new();
        fields_count(&k, "n", p->idle_n);
        fields_ns(&k, "min_ns", p->idle_min);
        fields_ns(&k, "median_ns", p->idle_median);
        fields_put(&kinds, p->kind, fields_end(&k));
    }
    fields_put(&j, "kinds", fields_end(&kinds));
    fields_put(&j, "tcp_min_rtt_ns", idle->floor_ns ? json_integer(idle->floor_ns) : json_null());
    fields_word(&j, "error", idle->why);
    return fields_end(&j);
}

json_t *describe_target(const struct target *t) {
    const struct member *first = &t->member[0];
    struct fields j = fields_new();
    json_t *members = json_array(), *list = json_array();
    for (unsigned m = 0; m < t->n_members; m++) {
        json_array_append_new(members, member(&t->member[m]));
        add_warnings(list, &t->member[m].facts.warnings);
    }
    /* The stripe over several members has warnings of its own. */
    if (t->n_members > 1) add_warnings(list, &t->facts.warnings);
    fields_text(&j, "label", t->label);
    fields_text(&j, "backend", first->backend->name);
    fields_word(&j, "engine", t->lost ? "" : first->facts.engine);
    fields_text(&j, "lost", t->lost ? t->lost_reason : NULL);
    fields_count(&j, "size", t->facts.exists ? t->facts.size : UINT64_MAX);
    fields_put(&j, "members", members);
    fields_put(&j, "warnings", list);
    return fields_end(&j);
}

json_t *describe_sameness(struct target *const *targets, unsigned n, const struct sameness *same) {
    json_t *list = json_array();
    for (unsigned b = 0; list && b < n; b++)
        for (unsigned a = 0; a < b; a++) {
            const struct sameness_pair *p = sameness_of(same, a, b);
            struct fields j = fields_new();
            /* What keeps nothing shares nothing. */
            bool stored = targets[a]->facts.kind != OBJECT_NULL && targets[b]->facts.kind != OBJECT_NULL;
            json_t *labels = json_array();
            json_array_append_new(labels, json_of_text(targets[a]->label));
            json_array_append_new(labels, json_of_text(targets[b]->label));
            fields_put(&j, "targets", labels);
            fields_text(&j, "verdict", stored ? sameness_name(p->verdict) : "no storage");
            fields_count(&j, "blocks", p->blocks);
            fields_word(&j, "how", p->how);
            json_array_append_new(list, fields_end(&j));
        }
    return list;
}

/* What came of one large READ; null where none was tried. */
static json_t *large_read(const struct reach *r) {
    struct fields j = fields_new();
    if (!r->bytes) return json_null();
    fields_count(&j, "bytes", r->bytes);
    fields_put(&j, "ns", r->ns >= 0 ? json_integer(r->ns) : json_null());
    fields_ns(&j, "small_ns", r->small_ns);
    fields_real(&j, "tcp_mss_bytes", r->mss);
    fields_real(&j, "tcp_path_mtu_bytes", r->mtu);
    return fields_end(&j);
}

json_t *describe_probed(const struct target *t) {
    json_t *j = describe_target(t);
    struct ping_idle idle = {.kinds = 0};
    if (!t->lost) ping_idle(t, PROBE_PINGS, &idle);
    if (j) json_object_set_new(j, "ping", pings(&idle));
    struct reach reach = {.bytes = 0};
    if (!t->lost) reach_try(t, &reach);
    if (j) json_object_set_new(j, "large_read", large_read(&reach));
    if (reach.warning[0])
        json_array_append_new(view_at(j, "warnings"), json_pack("{s:s, s:s}", "code", "mtu-black-hole", "text", reach.warning));
    return j;
}

/* ---- for people ---- */

static void line(struct grid *g, const char *name, const char *value) {
    char indented[120];
    const char *cells[] = {indented, value};
    snprintf(indented, sizeof indented, "  %s", name);
    if (value && value[0]) grid_row(g, cells);
}

static void size_line(struct grid *g, const char *name, const json_t *member, const char *key) {
    char human[40], text[100];
    if (!json_is_integer(view_at(member, key))) return;
    uint64_t bytes = view_uint(member, key);
    units_size_human(human, sizeof human, bytes);
    snprintf(text, sizeof text, "%s (%" PRIu64 " bytes)", human, bytes);
    line(g, name, bytes < 1024 ? human : text);
}

static const char *yes_no(const json_t *j, const char *key) {
    const json_t *v = view_at(j, key);
    return json_is_true(v) ? "yes" : json_is_false(v) ? "no" : "unknown";
}

static const char *value_text(const json_t *v, char *buf, size_t len) {
    if (json_is_string(v))
        text_safe(buf, len, json_string_value(v), json_string_length(v));
    else if (json_is_integer(v))
        snprintf(buf, len, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v))
        figure(buf, len, json_real_value(v), 4);
    else
        snprintf(buf, len, "%s", json_is_true(v) ? "yes" : json_is_false(v) ? "no" : "-");
    return buf;
}

static void print_member(struct grid *g, const json_t *m, unsigned number, unsigned n) {
    char text[512], which[40];
    json_t *negotiated = view_at(m, "negotiated"), *keys = view_at(m, "keys"), *value;
    const json_t *ids = view_at(m, "identities");
    const char *key;
    snprintf(which, sizeof which, "member %u of %u", number, n);
    if (n > 1) line(g, which, "-");
    line(g, "url", value_text(view_at(m, "url"), text, sizeof text));
    if (view_text(m, "summary")) line(g, "what", value_text(view_at(m, "summary"), text, sizeof text));
    if (!view_true(m, "exists")) line(g, "state", "does not exist; a run that writes would create it");
    for (size_t i = 0; i < json_array_size(ids); i++)
        line(g, i ? "also" : "identity", value_text(json_array_get(ids, i), text, sizeof text));
    if (view_text(m, "in_use")) line(g, "in use", value_text(view_at(m, "in_use"), text, sizeof text));
    if (view_true(m, "exists")) {
        size_line(g, "size", m, "size");
        size_line(g, "allocated", m, "allocated");
        size_line(g, "block", m, "block");
        size_line(g, "largest I/O", m, "max_io");
        if (view_uint(m, "max_depth")) line(g, "largest depth", value_text(view_at(m, "max_depth"), text, sizeof text));
        line(g, "read-only", yes_no(m, "read_only"));
        line(g, "volatile cache", yes_no(m, "volatile_cache"));
        line(g, "FUA", yes_no(m, "fua"));
        line(g, "flush", yes_no(m, "can_flush"));
    }
    size_line(g, "free on its fs", m, "fs_free");
    json_object_foreach(negotiated, key, value) {
        char name[100];
        line(g, text_safe(name, sizeof name, key, strlen(key)), value_text(value, text, sizeof text));
    }
    /* What was negotiated is what is in force of a key; the engine stands above. */
    json_object_foreach(keys, key, value) {
        char name[100];
        snprintf(name, sizeof name, "%s=", key);
        if (!json_object_get(negotiated, key) && strcmp(key, "engine") != 0)
            line(g, name, value_text(value, text, sizeof text));
    }
}

static void print_pings(struct grid *g, const json_t *ping) {
    char name[80], text[300], least[40], middle[40];
    const char *kind;
    json_t *p;
    json_object_foreach(view_at(ping, "kinds"), kind, p) {
        snprintf(name, sizeof name, "ping %s", kind);
        snprintf(text, sizeof text, "%s, median %s of %" PRIu64, figure_time(least, sizeof least, view_number(p, "min_ns")),
                 figure_time(middle, sizeof middle, view_number(p, "median_ns")), view_uint(p, "n"));
        line(g, name, text);
    }
    if (json_is_integer(view_at(ping, "tcp_min_rtt_ns")))
        line(g, "TCP round trip", figure_time(text, sizeof text, view_number(ping, "tcp_min_rtt_ns")));
    if (view_text(ping, "error")) line(g, "no pings", value_text(view_at(ping, "error"), text, sizeof text));
}

static void print_large_read(struct grid *g, const json_t *r) {
    char text[200], size[40], took[40] = "no answer";
    if (!json_is_object(r)) return;
    if (json_is_integer(view_at(r, "ns"))) figure_time(took, sizeof took, view_number(r, "ns"));
    snprintf(text, sizeof text, "%s: %s; MSS %.0f, path MTU %.0f",
             units_size_human(size, sizeof size, view_uint(r, "bytes")), took, view_number(r, "tcp_mss_bytes"),
             view_number(r, "tcp_path_mtu_bytes"));
    line(g, "one READ", text);
}

void describe_print(const json_t *target, FILE *out) {
    struct grid *g = grid_new("ll");
    char label[80], text[600];
    const json_t *members = view_at(target, "members"), *warns = view_at(target, "warnings");
    if (!g) return;
    grid_line(g, value_text(view_at(target, "label"), label, sizeof label));
    line(g, "backend", value_text(view_at(target, "backend"), text, sizeof text));
    if (view_text(target, "engine")) line(g, "engine", value_text(view_at(target, "engine"), text, sizeof text));
    if (view_text(target, "lost"))
        line(g, "not opened", value_text(view_at(target, "lost"), text, sizeof text));
    else {
        for (size_t m = 0; m < json_array_size(members); m++)
            print_member(g, json_array_get(members, m), (unsigned)m + 1, (unsigned)json_array_size(members));
        print_pings(g, view_at(target, "ping"));
        print_large_read(g, view_at(target, "large_read"));
    }
    for (size_t w = 0; w < json_array_size(warns); w++)
        line(g, "warning", value_text(view_at(json_array_get(warns, w), "text"), text, sizeof text));
    grid_print(g, 0, out);
    grid_free(g);
}

/* ---- environment ---- */

json_t *describe_environment(void) {
    const struct backend *const *all = backend_all();
    struct kv libraries = {0};
    for (size_t i = 0; all[i]; i++) {
        char name[48];
        const char *library = all[i]->library ? all[i]->library() : NULL;
        if (!library) continue;
        size_t n = strcspn(library, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, library);
        kv_text(&libraries, name, "%s", library[n] ? library + n + 1 : "");
    }
    json_t *j = environment_json("/proc", "/sys", &libraries, clock_cost_ns());
    kv_free(&libraries);
    return j;
}
