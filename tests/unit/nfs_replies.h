/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NFSv3 replies as a server would write them, for tests: built word by word, not with the code under test. */
#ifndef TESTS_NFS_REPLIES_H
#define TESTS_NFS_REPLIES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
    unsigned char *at;
    size_t n, room;
};

static inline void add_bytes(struct bytes *b, const void *p, size_t n) {
    if (b->n + n > b->room) {
        b->room = (b->n + n) * 2;
        b->at = realloc(b->at, b->room);
        if (!b->at) abort();
    }
    if (n) memcpy(b->at + b->n, p, n);
    b->n += n;
}

static inline void add_word(struct bytes *b, uint32_t v) {
    unsigned char p[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16), (unsigned char)(v >> 8),
                          (unsigned char)v};
    add_bytes(b, p, 4);
}

static inline void add_words(struct bytes *b, unsigned n, uint32_t first) {
    while (n--) add_word(b, first++);
}

static inline void set_word(struct bytes *b, size_t at, uint32_t v) {
    for (int i = 0; i < 4; i++) b->at[at + (size_t)i] = (unsigned char)(v >> (24 - 8 * i));
}

static inline void free_bytes(struct bytes *b) {
    free(b->at);
    memset(b, 0, sizeof *b);
}

/* What varies in a reply. */
struct shape {
    unsigned verf;          /* length of the RPC verifier */
    int attributes;         /* before and after */
    unsigned fragment;      /* bytes in one fragment; 0: all in one */
    unsigned extra;         /* bytes behind the end */
};

static inline size_t begin_reply(struct bytes *b, uint32_t xid, const struct shape *s) {
    size_t start = b->n;
    add_word(b, 0);
    add_word(b, xid);
    add_word(b, 1);         /* REPLY */
    add_word(b, 0);         /* MSG_ACCEPTED */
    add_word(b, s->verf ? 6 : 0);
    add_word(b, s->verf);
    add_words(b, (s->verf + 3) / 4, 0x7e000000);
    return start;
}

/* Puts the record mark, or cuts the record into fragments. */
static inline void end_reply(struct bytes *b, size_t start, const struct shape *s) {
    add_words(b, s->extra / 4, 0xeeeeeeee);
    size_t len = b->n - start - 4;
    if (!s->fragment) {
        set_word(b, start, 0x80000000u | (uint32_t)len);
        return;
    }
    unsigned char *copy = malloc(len ? len : 1);
    if (!copy) abort();
    memcpy(copy, b->at + start + 4, len);
    b->n = start;
    for (size_t at = 0; at < len; at += s->fragment) {
        size_t n = len - at < s->fragment ? len - at : s->fragment;
        add_word(b, (at + n == len ? 0x80000000u : 0) | (uint32_t)n);
        add_bytes(b, copy + at, n);
    }
    free(copy);
}

static inline void add_attributes(struct bytes *b, int follow, unsigned words) {
    add_word(b, follow ? 1 : 0);
    if (follow) add_words(b, words, 0xa0000000);
}

static inline unsigned char data_byte(uint64_t offset) {
    return (unsigned char)(offset * 7 + (offset >> 8) * 13 + 5);
}

static inline void reply_read(struct bytes *b, uint32_t xid, uint64_t offset, uint32_t count, const struct shape *s) {
    size_t start = begin_reply(b, xid, s);
    add_word(b, 0);         /* SUCCESS */
    add_word(b, 0);         /* NFS3_OK */
    add_attributes(b, s->attributes, 21);
    add_word(b, count);
    add_word(b, 0);         /* eof */
    add_word(b, count);
    for (uint32_t i = 0; i < count; i++) {
        unsigned char c = data_byte(offset + i);
        add_bytes(b, &c, 1);
    }
    add_bytes(b, "\0\0\0", -count & 3);
    end_reply(b, start, s);
}

static inline void reply_write(struct bytes *b, uint32_t xid, uint32_t count, uint32_t committed, const char *verf,
                               const struct shape *s) {
    size_t start = begin_reply(b, xid, s);
    add_word(b, 0);
    add_word(b, 0);
    add_attributes(b, s->attributes, 6);
    add_attributes(b, s->attributes, 21);
    add_word(b, count);
    add_word(b, committed);
    add_bytes(b, verf, 8);
    end_reply(b, start, s);
}

static inline void reply_commit(struct bytes *b, uint32_t xid, const char *verf, const struct shape *s) {
    size_t start = begin_reply(b, xid, s);
    add_word(b, 0);
    add_word(b, 0);
    add_attributes(b, s->attributes, 6);
    add_attributes(b, s->attributes, 21);
    add_bytes(b, verf, 8);
    end_reply(b, start, s);
}

static inline void reply_getattr(struct bytes *b, uint32_t xid, uint64_t size, uint32_t fileid, const struct shape *s) {
    size_t start = begin_reply(b, xid, s);
    add_word(b, 0);
    add_word(b, 0);
    add_word(b, 1);         /* a regular file */
    add_words(b, 4, 0xa0000000);
    add_word(b, (uint32_t)(size >> 32));
    add_word(b, (uint32_t)size);
    add_words(b, 4, 0xa0000000);
    add_word(b, 0x11);      /* fsid */
    add_word(b, 0x22);
    add_word(b, 0);
    add_word(b, fileid);
    add_words(b, 6, 0xa0000000);
    end_reply(b, start, s);
}

/* An NFS status; what a failed operation says of attributes follows. */
static inline void reply_status(struct bytes *b, uint32_t xid, uint32_t status, const struct shape *s) {
    size_t start = begin_reply(b, xid, s);
    add_word(b, 0);
    add_word(b, status);
    add_attributes(b, s->attributes, 6);
    add_attributes(b, s->attributes, 21);
    end_reply(b, start, s);
}

static inline void reply_accept(struct bytes *b, uint32_t xid, uint32_t accept, const struct shape *s) {
    size_t start = begin_reply(b, xid, s);
    add_word(b, accept);
    if (accept == 2) add_words(b, 2, 2);
    end_reply(b, start, s);
}

static inline void reply_denied(struct bytes *b, uint32_t xid, uint32_t reject, uint32_t why, const struct shape *s) {
    size_t start = b->n;
    add_word(b, 0);
    add_word(b, xid);
    add_word(b, 1);
    add_word(b, 1);         /* MSG_DENIED */
    add_word(b, reject);
    add_word(b, why);
    if (reject == 0) add_word(b, why);
    end_reply(b, start, s);
}

#endif
