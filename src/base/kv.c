/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/kv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys longer than the field are cut the same way when they are stored and when they are sought. */
#define KEY_MAX (sizeof(((struct kv_item *)0)->key) - 1)

static struct kv_item *kv_lookup(const struct kv *kv, const char *key) {
    for (size_t i = 0; i < kv->n; i++)
        if (strncmp(kv->items[i].key, key, KEY_MAX) == 0) return &kv->items[i];
    return NULL;
}

static void kv_drop(struct kv *kv, const char *key) {
    struct kv_item *item = kv_lookup(kv, key);

    if (!item) return;
    free(item->text);
    memmove(item, item + 1, (size_t)(kv->items + kv->n - (item + 1)) * sizeof(*item));
    kv->n--;
}

/* The item for `key`, emptied if it was there, else new at the end; NULL when memory ran out. */
static struct kv_item *kv_slot(struct kv *kv, const char *key, enum kv_type type) {
    struct kv_item *item = kv_lookup(kv, key);

    if (!item) {
        if (kv->n == kv->cap) {
            size_t cap = kv->cap ? kv->cap * 2 : 16;
            struct kv_item *items = reallocarray(kv->items, cap, sizeof(*items));
            if (!items) return NULL;
            kv->items = items;
            kv->cap = cap;
        }
        item = &kv->items[kv->n++];
        snprintf(item->key, sizeof(item->key), "%s", key);
    } else {
        free(item->text);
    }
    item->type = type;
    item->u = 0;
    item->real = 0;
    item->text = NULL;
    return item;
}

void kv_uint(struct kv *kv, const char *key, uint64_t value) {
    struct kv_item *item = kv_slot(kv, key, KV_UINT);

    if (item) item->u = value;
}

void kv_gauge(struct kv *kv, const char *key, uint64_t value) {
    struct kv_item *item = kv_slot(kv, key, KV_GAUGE);

    if (item) item->u = value;
}

void kv_real(struct kv *kv, const char *key, double value) {
    struct kv_item *item = kv_slot(kv, key, KV_REAL);

    if (item) item->real = value;
}

void kv_bool(struct kv *kv, const char *key, bool value) {
    struct kv_item *item = kv_slot(kv, key, KV_BOOL);

    if (item) item->u = value;
}

void kv_text(struct kv *kv, const char *key, const char *fmt, ...) {
    char *text;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap); /* before the old text is freed: an argument may be that text */
    va_end(ap);
    if (n < 0) {
        kv_drop(kv, key); /* a stale value would be a false one */
        return;
    }
    struct kv_item *item = kv_slot(kv, key, KV_TEXT);
    if (item)
        item->text = text;
    else
        free(text);
}

const struct kv_item *kv_find(const struct kv *kv, const char *key) {
    return kv_lookup(kv, key);
}

uint64_t kv_get_uint(const struct kv *kv, const char *key, uint64_t otherwise) {
    const struct kv_item *item = kv_lookup(kv, key);

    return item && (item->type == KV_UINT || item->type == KV_GAUGE) ? item->u : otherwise;
}

static bool kv_is_number(const struct kv_item *item) {
    return item->type == KV_UINT || item->type == KV_REAL;
}

static double kv_number(const struct kv_item *item) {
    return item->type == KV_UINT ? (double)item->u : item->real;
}

static void kv_put(struct kv *kv, const struct kv_item *item) {
    switch (item->type) {
    case KV_UINT: kv_uint(kv, item->key, item->u); break;
    case KV_GAUGE: kv_gauge(kv, item->key, item->u); break;
    case KV_REAL: kv_real(kv, item->key, item->real); break;
    case KV_BOOL: kv_bool(kv, item->key, item->u != 0); break;
    case KV_TEXT: kv_text(kv, item->key, "%s", item->text); break;
    }
}

void kv_merge_sum(struct kv *into, const struct kv *from) {
    for (size_t i = 0; i < from->n; i++) {
        const struct kv_item *b = &from->items[i];
        struct kv_item *a = kv_lookup(into, b->key);

        if (a && a->type == KV_GAUGE && b->type == KV_GAUGE)
            a->u = a->u > b->u ? a->u : b->u;
        else if (!a || !kv_is_number(a) || !kv_is_number(b))
            kv_put(into, b);
        else if (a->type == KV_UINT && b->type == KV_UINT)
            a->u += b->u;
        else
            kv_real(into, a->key, kv_number(a) + kv_number(b));
    }
}

void kv_copy(struct kv *into, const struct kv *from) {
    if (into == from) return;
    kv_free(into);
    for (size_t i = 0; i < from->n; i++) kv_put(into, &from->items[i]);
}

void kv_free(struct kv *kv) {
    for (size_t i = 0; i < kv->n; i++) free(kv->items[i].text);
    free(kv->items);
    memset(kv, 0, sizeof(*kv));
}
