/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Disk contents made by hand, as few bytes of each as it takes to be recognised. */
#ifndef TESTS_DISK_IMAGES_H
#define TESTS_DISK_IMAGES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern/data.h"

static inline void put(int fd, uint64_t at, const void *data, size_t len) {
    if (pwrite(fd, data, len, (off_t)at) != (ssize_t)len) abort();
}

static inline void put_le(int fd, uint64_t at, uint64_t value, unsigned bytes) {
    unsigned char b[8];

    for (unsigned i = 0; i < bytes; i++) b[i] = (unsigned char)(value >> 8 * i);
    put(fd, at, b, bytes);
}

static inline void image_ext4(int fd, uint64_t at, uint64_t size, const char *label) {
    uint64_t s = at + 1024;

    put_le(fd, s + 0, 1024, 4);                 /* inodes */
    put_le(fd, s + 4, size / 4096, 4);          /* blocks */
    put_le(fd, s + 24, 2, 4);                   /* of 4 KiB */
    put_le(fd, s + 56, 0xef53, 2);
    put_le(fd, s + 76, 1, 4);                   /* revision */
    put_le(fd, s + 92, 0x4, 4);                 /* has_journal */
    put_le(fd, s + 96, 0x42, 4);                /* filetype, extents */
    put(fd, s + 120, label, strlen(label));
}

static inline void image_lvm(int fd, uint64_t at) {
    put(fd, at + 512, "LABELONE", 8);
    put_le(fd, at + 520, 1, 8);
    put_le(fd, at + 532, 32, 4);
    put(fd, at + 536, "LVM2 001", 8);
    put(fd, at + 544, "0123456789abcdefghijABCDEFGHIJ01", 32);
}

static inline void image_swap(int fd, uint64_t at, uint64_t size) {
    put_le(fd, at + 1024, 1, 4);
    put_le(fd, at + 1028, size / 4096 - 1, 4);
    put(fd, at + 4086, "SWAPSPACE2", 10);
}

static inline void image_md10(int fd, uint64_t at, uint64_t size) {
    uint64_t sector = (size / 512 - 16) & ~7ULL, s = at + sector * 512;

    put_le(fd, s, 0xa92b4efc, 4);
    put_le(fd, s + 4, 1, 4);
    put(fd, s + 32, "host:7", 6);
    put_le(fd, s + 144, sector, 8);
}

static inline void image_zfs(int fd, uint64_t at) {
    for (unsigned i = 0; i < 8; i++) put_le(fd, at + 131072 + i * 1024, 0x00bab10c, 8);
}

static inline void image_luks(int fd, uint64_t at) {
    put(fd, at, "LUKS\xba\xbe\0\1", 8);
    put(fd, at + 168, "12345678-1234-1234-1234-123456789abc", 36);
}

static inline void image_vmfs(int fd, uint64_t at) {
    put(fd, at + (1 << 20), "\x0d\xd0\x01\xc0", 4);
}

static inline uint32_t crc32_of(const unsigned char *p, size_t n) {
    uint32_t crc = 0xffffffff;

    while (n-- > 0) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return ~crc;
}

struct image_part { uint64_t start, size; }; /* bytes */

static inline void le(unsigned char *p, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) p[i] = (unsigned char)(value >> 8 * i);
}

/* One of the two headers and its entries. */
static inline void gpt_header(int fd, uint64_t size, unsigned sector, uint64_t mine, uint64_t other, uint64_t entries,
                              const unsigned char *table, size_t table_len) {
    unsigned char h[92] = { 0 };

    memcpy(h, "EFI PART", 8);
    le(h + 8, 0x10000, 4);
    le(h + 12, 92, 4);
    le(h + 24, mine, 8);
    le(h + 32, other, 8);
    le(h + 40, 16384 / sector + 2, 8);
    le(h + 48, size / sector - 16384 / sector - 2, 8);
    memcpy(h + 56, "0123456789abcdef", 16);
    le(h + 72, entries, 8);
    le(h + 80, 128, 4);
    le(h + 84, 128, 4);
    le(h + 88, crc32_of(table, table_len), 4);
    le(h + 16, crc32_of(h, 92), 4);
    put(fd, mine * sector, h, 92);
    put(fd, entries * sector, table, table_len);
}

static inline void image_gpt(int fd, uint64_t size, unsigned sector, const struct image_part *part, unsigned n, int primary) {
    unsigned char table[128 * 128] = { 0 }, pmbr[66] = { 0 };
    uint64_t last = size / sector - 1;

    for (unsigned i = 0; i < n; i++) {
        unsigned char *e = table + i * 128;
        memcpy(e, "\xaf\x3d\xc6\x0f\x83\x84\x72\x47\x8e\x79\x3d\x69\xd8\x47\x7d\xe4", 16); /* Linux */
        memcpy(e + 16, "uniqueuniqueuni", 15);
        e[31] = (unsigned char)i;
        le(e + 32, part[i].start / sector, 8);
        le(e + 40, (part[i].start + part[i].size) / sector - 1, 8);
    }
    if (primary) {
        pmbr[4] = 0xee;
        le(pmbr + 8, 1, 4);
        le(pmbr + 12, last > 0xffffffff ? 0xffffffff : last, 4);
        le(pmbr + 64, 0xaa55, 2);
        put(fd, 446, pmbr, 66);
        gpt_header(fd, size, sector, 1, last, 2, table, sizeof(table));
    }
    gpt_header(fd, size, sector, last, 1, last - 16384 / sector, table, sizeof(table));
}

static inline void mbr_entry(int fd, uint64_t table, unsigned i, unsigned type, uint64_t start, uint64_t size) {
    uint64_t e = table + 446 + 16 * i;

    put_le(fd, e + 4, type, 1);
    put_le(fd, e + 8, start / 512, 4);
    put_le(fd, e + 12, size / 512, 4);
    put_le(fd, table + 510, 0xaa55, 2);
}

/* What a run leaves behind. */
static inline void image_ours(int fd, uint64_t from, uint64_t to) {
    unsigned char buf[65536];
    struct data data;

    data_init(&data, 5, 1, NULL);
    for (uint64_t at = from; at < to;) {
        size_t n = to - at < sizeof(buf) ? (size_t)(to - at) : sizeof(buf);
        data_make(&data, buf, at, n);
        put(fd, at, buf, n);
        at += n;
    }
}

#endif
