/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An ordered list of named facts (negotiated values, protocol counters) that needs no JSON library where it is made. */
#ifndef BASE_KV_H
#define BASE_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kv_type { KV_UINT, KV_REAL, KV_TEXT, KV_BOOL, KV_GAUGE };

struct kv_item {
    char key[48];
    enum kv_type type;
    uint64_t u; /* KV_UINT, KV_BOOL, KV_GAUGE */
    double real;
    char *text; /* KV_TEXT, owned */
};

struct kv {
    struct kv_item *items; /* owned; zero-initialised struct kv is an empty list */
    size_t n, cap;
};

/* Set or replace. Text is copied. Out of memory aborts nothing: the fact is dropped. Not for the data path. */
void kv_uint(struct kv *kv, const char *key, uint64_t value);
/* A level, not an amount (a window, a round-trip time): never added up. */
void kv_gauge(struct kv *kv, const char *key, uint64_t value);
void kv_real(struct kv *kv, const char *key, double value);
void kv_bool(struct kv *kv, const char *key, bool value);
void kv_text(struct kv *kv, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
const struct kv_item *kv_find(const struct kv *kv, const char *key); /* NULL if absent */
uint64_t kv_get_uint(const struct kv *kv, const char *key, uint64_t otherwise);
/* Adds the numbers of `from` to those of `into`; texts and booleans are copied over. */
/* Of two gauges the larger one stays. */
void kv_merge_sum(struct kv *into, const struct kv *from);
void kv_copy(struct kv *into, const struct kv *from); /* `into` is freed first */
void kv_free(struct kv *kv);

#endif
