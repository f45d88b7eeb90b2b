/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/probe.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "pattern/data.h"
#include "pattern/mark.h"

#define CHUNK       MARK_STEP
#define VMFS_OFFSET (1u << 20)
#define PROBES_MAX  1000 /* signatures that one probe may give */

/* A disk that was made on another kind of device has its table where that one's sectors were. */
static const unsigned sector_sizes[] = {512, 4096};

static int blkid_failed(const struct probe_image *image, const char *what, struct err *err) {
    return err_set(err, STATUS_TARGET, "libblkid: %s, on the first and last bytes of %" PRIu64 ": %s", what,
                   image->size, errno ? strerror(errno) : "failed");
}

int probe_copy(struct probe_image *image, uint64_t offset, size_t len, struct err *err) {
    if (offset >= image->size) return 0;
    if (len > image->size - offset) len = (size_t)(image->size - offset);
    if (blockio_read(image->io, offset, image->buf, len, err) != 0) return -1;
    for (size_t at = 0, n; at < len; at += n) {
        n = CHUNK - (size_t)((offset + at) % CHUNK);
        if (n > len - at) n = len - at;
        enum data_kind kind = data_look(image->buf + at, offset + at, n);
        if (kind == DATA_ZEROS) continue; /* stays a hole */
        if (kind == DATA_FOREIGN) image->foreign = true;
        if (pwrite(image->fd, image->buf + at, n, (off_t)(offset + at)) != (ssize_t)n)
            return err_set(err, STATUS_TARGET, "the copy in memory, to look for signatures: %s", strerror(errno));
    }
    return 0;
}

/* ---- words ---- */

static const char *value_of(blkid_probe pr, const char *name) {
    const char *value = NULL;

    return blkid_probe_lookup_value(pr, name, &value, NULL) == 0 && value && *value ? value : NULL;
}

static void describe_superblock(blkid_probe pr, const char *type, char *text, size_t len) {
    static const struct {
        const char *type, *words;
    } known[] = {{"LVM2_member", "LVM physical volume"},
                 {"LVM1_member", "LVM physical volume"},
                 {"linux_raid_member", "member of a Linux RAID"},
                 {"zfs_member", "member of a ZFS pool"},
                 {"crypto_LUKS", "LUKS encrypted volume"},
                 {"swap", "swap space"},
                 {"swsuspend", "image of a suspended system"},
                 {"VMFS_volume_member", "VMFS datastore"},
                 {"VMFS", "VMFS datastore"},
                 {"drbd", "DRBD volume"},
                 {"oracleasm", "Oracle ASM disk"},
                 {"ceph_bluestore", "Ceph OSD"},
                 {"bcache", "bcache device"},
                 {"BitLocker", "BitLocker volume"}};
    const char *label = value_of(pr, "LABEL"), *usage = value_of(pr, "USAGE"), *words = NULL;
    char safe[80], safe_type[32];

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].type, type) == 0) words = known[i].words;
    text_safe(safe_type, sizeof(safe_type), type, strlen(type));
    if (words)
        snprintf(text, len, "%s (%s)", words, strcmp(type, "VMFS_volume_member") == 0 ? "VMFS" : safe_type);
    else if (usage && strcmp(usage, "filesystem") == 0)
        snprintf(text, len, "%s file system", safe_type);
    else
        snprintf(text, len, "%s%s%s", safe_type, usage && strcmp(usage, "other") != 0 ? ", " : "",
                 usage && strcmp(usage, "other") != 0 ? usage : "");
    if (!label) return;
    size_t n = strlen(text);
    snprintf(text + n, len - n, " \"%s\"", text_safe(safe, sizeof(safe), label, strlen(label)));
}

static void describe_table(const char *type, char *text, size_t len) {
    if (strcmp(type, "gpt") == 0)
        snprintf(text, len, "GPT partition table");
    else if (strcmp(type, "dos") == 0)
        snprintf(text, len, "MBR partition table (dos)");
    else if (strcmp(type, "PMBR") == 0)
        snprintf(text, len, "protective MBR of a GPT that is gone (PMBR)");
    else
        snprintf(text, len, "%s partition table", type);
}

/* ---- findings ---- */

static struct content_signature *find(struct content *c, const char *name, uint64_t start) {
    for (unsigned i = 0; i < c->n; i++)
        if (c->signature[i].start == start && strcmp(c->signature[i].name, name) == 0) return &c->signature[i];
    return NULL;
}

static void add(struct content *c, const char *name, const char *text, uint64_t start, unsigned partition) {
    if (find(c, name, start)) return;
    if (c->n == CONTENT_SIGNATURES) {
        c->more = true;
        return;
    }
    struct content_signature *s = &c->signature[c->n++];
    memset(s, 0, sizeof(*s));
    text_safe(s->name, sizeof(s->name), name, strlen(name));
    snprintf(s->text, sizeof(s->text), "%s", text);
    s->start = start;
    s->partition = partition;
}

/* ---- our own data that looks like something ---- */

/* Are these bytes of the copy, as far as their sectors go, ours? */
static bool is_ours(const struct probe_image *image, uint64_t at, size_t len) {
    uint64_t first = at / DATA_SECTOR * DATA_SECTOR;
    unsigned char sector[DATA_SECTOR];

    for (; first < at + len; first += DATA_SECTOR)
        if (pread(image->fd, sector, sizeof(sector), (off_t)first) != (ssize_t)sizeof(sector) ||
            !data_sector_is_ours(sector))
            return false;
    return true;
}

/* Random bytes hold a signature now and then: one place in 65536 says 55 AA, and a table of an Atari has no magic at
 * all. Where the magic stands in a sector that proves itself to be ours, nobody has put it there. A signature without a
 * place is none if all that was copied is ours or zero, and its beginning is ours. */
static bool is_imitation(const struct probe_image *image, blkid_probe pr, uint64_t start) {
    bool table = !value_of(pr, "TYPE") && value_of(pr, "PTTYPE");
    const char *offset = value_of(pr, table ? "PTMAGIC_OFFSET" : "SBMAGIC_OFFSET"), *magic;
    size_t len = 0;

    if (!offset) return !image->foreign && is_ours(image, start, DATA_SECTOR);
    if (blkid_probe_lookup_value(pr, table ? "PTMAGIC" : "SBMAGIC", &magic, &len) != 0 || len == 0) len = 1;
    return is_ours(image, start + strtoull(offset, NULL, 10), len);
}

static void add_found(const struct probe_image *image, blkid_probe pr, struct content *c, uint64_t start,
                      unsigned partition) {
    const char *type = value_of(pr, "TYPE"), *table = value_of(pr, "PTTYPE");
    char text[160];

    if (is_imitation(image, pr, start)) return;
    if (type) {
        describe_superblock(pr, type, text, sizeof(text));
        add(c, strcmp(type, "VMFS_volume_member") == 0 ? "VMFS" : type, text, start, partition);
    } else if (table) {
        describe_table(table, text, sizeof(text));
        add(c, table, text, start, partition);
    } else {
        add(c, "unnamed", "a signature that libblkid finds and does not name (unnamed)", start, partition);
    }
}

/* The protective MBR of a GPT is no finding of its own. */
static void drop_protective(struct content *c) {
    for (unsigned i = 0; i < c->n; i++) {
        if (strcmp(c->signature[i].name, "PMBR") != 0 || !find(c, "gpt", c->signature[i].start)) continue;
        memmove(&c->signature[i], &c->signature[i + 1], (c->n - i - 1) * sizeof(c->signature[0]));
        c->n--;
        i--;
    }
}

/* ---- libblkid ---- */

static blkid_probe open_probe(const struct probe_image *image, uint64_t start, uint64_t len, unsigned sector) {
    blkid_probe pr = blkid_new_probe();

    if (!pr) return NULL;
    if (blkid_probe_set_device(pr, image->fd, (blkid_loff_t)start, (blkid_loff_t)len) != 0 ||
        blkid_probe_set_sectorsize(pr, sector) != 0 || blkid_probe_enable_superblocks(pr, 1) != 0 ||
        blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_LABEL | BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE |
                                                  BLKID_SUBLKS_MAGIC | BLKID_SUBLKS_BADCSUM) != 0 ||
        blkid_probe_enable_partitions(pr, 1) != 0 ||
        blkid_probe_set_partitions_flags(pr, BLKID_PARTS_FORCE_GPT | BLKID_PARTS_MAGIC) != 0) {
        blkid_free_probe(pr);
        return NULL;
    }
    return pr;
}

/* Every signature, not the best one: blkid_do_probe goes on behind the last, where a safe probe would only say
 * "ambivalent". */
static int probe_range(const struct probe_image *image, uint64_t start, uint64_t len, unsigned partition,
                       struct content *c, struct err *err) {
    for (unsigned i = 0; i < 2; i++) {
        int rc = 0;
        errno = 0;
        blkid_probe pr = open_probe(image, start, len, sector_sizes[i]);
        if (!pr) return blkid_failed(image, "starting", err);
        for (unsigned n = 0; n < PROBES_MAX && (rc = blkid_do_probe(pr)) == 0; n++)
            add_found(image, pr, c, start, partition);
        blkid_free_probe(pr);
        if (rc < 0) return blkid_failed(image, "probing", err);
    }
    unsigned char magic[4];
    if (len > VMFS_OFFSET && !is_ours(image, start + VMFS_OFFSET, sizeof(magic)) &&
        pread(image->fd, magic, 4, (off_t)(start + VMFS_OFFSET)) == 4 &&
        (memcmp(magic, "\x0d\xd0\x01\xc0", 4) == 0 || memcmp(magic, "\xc0\x01\xd0\x0d", 4) == 0))
        add(c, "VMFS", "VMFS datastore (VMFS)", start, partition);
    return 0;
}

/* ---- partitions ---- */

static bool is_copied(const struct probe_image *image, uint64_t start) {
    for (unsigned i = 0; i < image->n_starts; i++)
        if (image->start[i] == start) return true;
    return false;
}

/* 1: copied now, 0: had been, or lies outside, -1: failed. */
static int copy_partition(struct probe_image *image, uint64_t start, uint64_t len, struct content *c, struct err *err) {
    if (start >= image->size || is_copied(image, start)) return 0;
    if (image->limit != INT64_MAX && clock_now(image->clock) >= image->limit) {
        image->cut = true;
        return 0;
    }
    if (image->n_starts == PROBE_REGIONS) {
        c->more = true;
        return 0;
    }
    image->start[image->n_starts++] = start;
    /* A table may name any sector; reads begin and end at multiples of the object's block. */
    uint64_t from = start - start % image->block, end = start + len;
    if (probe_copy(image, from, CONTENT_HEAD, err) != 0) return -1;
    end -= end % image->block;
    if (end > from + CONTENT_HEAD) {
        from = end - from > CONTENT_HEAD + CONTENT_TAIL ? end - CONTENT_TAIL : from + CONTENT_HEAD;
        from -= from % image->block;
        if (probe_copy(image, from, (size_t)(end - from), err) != 0) return -1;
    }
    return 1;
}

/* The part of the object that a partition covers; false: none. */
static bool partition_range(const struct probe_image *image, blkid_partition p, uint64_t *start, uint64_t *len) {
    uint64_t sectors = (uint64_t)blkid_partition_get_size(p);

    *start = (uint64_t)blkid_partition_get_start(p);
    if (*start == 0 || *start >= image->size / 512) return false;
    *start *= 512;
    *len = sectors > (image->size - *start) / 512 ? image->size - *start : sectors * 512;
    return *len > 0;
}

/* Logical partitions are a chain of tables within the extended one, each naming the next by its distance from the
 * first; libblkid only sees as far as it was copied. */
static int copy_chain(struct probe_image *image, uint64_t first, unsigned sector, struct content *c, struct err *err) {
    uint64_t table = first;
    int found = 0;

    for (unsigned n = 0; n < PROBE_REGIONS; n++) {
        unsigned char t[512];
        uint64_t next = 0;
        if (pread(image->fd, t, sizeof(t), (off_t)table) != (ssize_t)sizeof(t) || t[510] != 0x55 || t[511] != 0xaa)
            break;
        for (unsigned i = 0; i < 4; i++) {
            const unsigned char *e = t + 446 + 16 * i;
            uint64_t distance = (uint64_t)e[8] | (uint64_t)e[9] << 8 | (uint64_t)e[10] << 16 | (uint64_t)e[11] << 24;
            if ((e[4] == 0x05 || e[4] == 0x0f || e[4] == 0x85) && distance > 0) next = first + distance * sector;
        }
        if (next == 0 || next >= image->size) break;
        int rc = copy_partition(image, next, CONTENT_HEAD, c, err);
        if (rc < 0) return rc;
        if (rc > 0) found = 1;
        table = next;
    }
    return found;
}

/* Copies what the table names. 1: something new, so that there may be more to see (chained and nested tables). */
static int copy_partitions(struct probe_image *image, unsigned sector, struct content *c, struct err *err) {
    int found = 0;
    errno = 0;
    blkid_probe pr = open_probe(image, 0, image->size, sector);
    if (!pr) return blkid_failed(image, "starting", err);
    blkid_partlist list = blkid_probe_get_partitions(pr);
    int n = list ? blkid_partlist_numof_partitions(list) : 0;
    for (int i = 0; i < n && found >= 0; i++) {
        blkid_partition p = blkid_partlist_get_partition(list, i);
        uint64_t start, len;
        if (!partition_range(image, p, &start, &len)) continue;
        int rc = copy_partition(image, start, len, c, err);
        if (rc >= 0 && blkid_partition_is_extended(p)) {
            int chain = copy_chain(image, start, sector, c, err);
            if (chain != 0) rc = chain;
        }
        if (rc != 0) found = rc;
    }
    blkid_free_probe(pr);
    return found;
}

static void add_count(struct content *c, blkid_partlist list, int n) {
    blkid_parttable table = blkid_partlist_get_table(list);
    const char *type = table ? blkid_parttable_get_type(table) : NULL;
    struct content_signature *s = type ? find(c, type, 0) : NULL;

    if (!s || strstr(s->text, " with ")) return; /* the other sector size said so already */
    size_t len = strlen(s->text);
    snprintf(s->text + len, sizeof(s->text) - len, " with %d partition%s", n, n == 1 ? "" : "s");
}

static int probe_partitions(struct probe_image *image, unsigned sector, struct content *c, struct err *err) {
    int rc = 0;
    errno = 0;
    blkid_probe pr = open_probe(image, 0, image->size, sector);
    if (!pr) return blkid_failed(image, "starting", err);
    blkid_partlist list = blkid_probe_get_partitions(pr);
    int n = list ? blkid_partlist_numof_partitions(list) : 0;
    if (n > 0) add_count(c, list, n);
    for (int i = 0; i < n && rc == 0; i++) {
        blkid_partition p = blkid_partlist_get_partition(list, i);
        uint64_t start, len;
        if (blkid_partition_is_extended(p) || !partition_range(image, p, &start, &len)) continue;
        rc = probe_range(image, start, len, (unsigned)blkid_partition_get_partno(p), c, err);
    }
    blkid_free_probe(pr);
    return rc;
}

int probe_run(struct probe_image *image, struct content *out, struct err *err) {
    if (image->size < 512) return 0;
    if (probe_range(image, 0, image->size, 0, out, err) != 0) return -1;
    for (unsigned i = 0; i < 2; i++) {
        int more = 1;
        while (more > 0) more = copy_partitions(image, sector_sizes[i], out, err); /* ends: regions are limited */
        if (more < 0 || probe_partitions(image, sector_sizes[i], out, err) != 0) return -1;
    }
    drop_protective(out);
    return 0;
}
