/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our random data holds a signature now and then: its own proof outweighs it. What somebody else put on top of our data
 * is found. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "disk_images.h"
#include "fake_backend.h"
#include "pattern/mark.h"
#include "safety/content.h"
#include "tests/unit/rounds.h"

#define MIB  (1ULL << 20)
#define SIZE (512 * MIB) /* mkfs.xfs wants 300 */

struct bench {
    struct fake fake;
    struct fake *conf;
    struct clock_virtual clock;
    struct content c;
    struct err err;
    char text[400];
};

/* As after a fill of an object: its ends hold our data, and so does what we look at between. */
static void fill_ours(struct bench *b, uint64_t size) {
    assert_int_equal(ftruncate(b->fake.fd, 0), 0);
    assert_int_equal(ftruncate(b->fake.fd, (off_t)size), 0);
    b->fake.facts.size = size;
    image_ours(b->fake.fd, 0, 4 * MIB);
    image_ours(b->fake.fd, size - 2 * MIB, size);
}

static int setup(void **state) {
    struct bench *b = calloc(1, sizeof(*b));

    fake_init(&b->fake, SIZE);
    b->conf = &b->fake;
    clock_virtual_init(&b->clock, 0);
    fill_ours(b, SIZE);
    *state = b;
    return 0;
}

static int teardown(void **state) {
    struct bench *b = *state;

    fake_free(&b->fake);
    free(b);
    return 0;
}

static enum content_kind examine(struct bench *b) {
    struct open_how how = {.conf = &b->conf, .mode = OPEN_READ, .clock = &b->clock.clock};
    struct handle *h;
    struct facts facts;

    assert_int_equal(fake_open(&how, &h, &facts, &b->err), 0);
    if (content_examine(&fake_backend, h, &facts, &b->clock.clock, 0, facts.size, &b->c, &b->err) != 0)
        fail_msg("%s", b->err.msg);
    content_describe(&b->c, b->text, sizeof(b->text));
    fake_close(h);
    facts_free(&facts);
    return content_kind(&b->c);
}

static bool has(const struct bench *b, const char *name) {
    for (unsigned i = 0; i < b->c.n; i++)
        if (strcmp(b->c.signature[i].name, name) == 0) return true;
    return false;
}

/* ---- imitations ---- */

struct piece {
    unsigned at, len;
    const char *bytes;
};

struct imitation {
    const char *name;
    bool known; /* to every libblkid */
    struct piece piece[6];
};

static const struct imitation imitations[] = {
    {"jbd", false, {{1024 + 0x38, 2, "\x53\xef"}, {1024 + 0x60, 4, "\x08\0\0\0"}}},
    {"LVM2_member",
     true,
     {{512, 8, "LABELONE"}, {520, 8, "\1\0\0\0\0\0\0\0"}, {532, 4, "\x20\0\0\0"}, {536, 8, "LVM2 001"}}},
    {"atari", false, {{0x1c6, 12, "\1GEM\0\0\0\x0a\0\0\1\0"}}},
    {"minix", false, {{1024 + 0x10, 2, "\x7f\x13"}}},
};

static void force(unsigned char *data, const struct imitation *i) {
    for (const struct piece *p = i->piece; p->len; p++) memcpy(data + p->at, p->bytes, p->len);
}

static void seal(unsigned char *data, size_t len) {
    for (size_t at = 0; at < len; at += 512) {
        uint64_t tag = data_tag(data + at);
        memcpy(data + at + 504, &tag, sizeof(tag));
    }
}

/* The same bytes, once as a write of ours brought them about, once as somebody else's. */
static void own_proof_outweighs_an_imitation(void **state) {
    static const uint64_t sizes[] = {64 * MIB, 512 * MIB, 1ULL << 40};
    struct bench *b = *state;
    unsigned char data[65536], foreign[65536];

    for (unsigned s = 0; s < rounds(3, 1); s++)
        for (unsigned i = 0; i < sizeof(imitations) / sizeof(imitations[0]); i++) {
            const struct imitation *im = &imitations[i];
            struct data d;
            fill_ours(b, sizes[s]);
            data_init(&d, 11 + i, 0, NULL);
            data_make(&d, data, 0, sizeof(data));
            force(data, im);
            memcpy(foreign, data, sizeof(data));
            seal(data, sizeof(data));
            put(b->fake.fd, 0, data, sizeof(data));
            if (examine(b) != CONTENT_OWN) fail_msg("%s: %s", im->name, b->text);
            assert_int_equal(b->c.n, 0);
            put(b->fake.fd, 0, foreign, sizeof(foreign));
            enum content_kind kind = examine(b);
            if (im->known && (kind != CONTENT_KNOWN || !has(b, im->name))) fail_msg("%s: %s", im->name, b->text);
            assert_true(kind == CONTENT_KNOWN || kind == CONTENT_UNKNOWN);
        }
}

/* A master boot record's 55 AA stands in the tag: one write in 65536 has it by chance. */
static void a_tag_that_ends_like_a_boot_record(void **state) {
    struct bench *b = *state;
    unsigned char data[512];
    struct data d;

    data_init(&d, 77, 0, NULL);
    data_make(&d, data, 0, sizeof(data));
    for (unsigned i = 0; i < 4; i++) memset(data + 446 + 16 * i, 0, 16);
    memcpy(data + 446, "\0\0\0\0\x83\0\0\0\0\x08\0\0\0\x08\0\0", 16); /* one partition of 1 MiB at 1 MiB */
    for (uint64_t n = 0; data[510] != 0x55 || data[511] != 0xaa; n++) {
        assert_true(n < 10000000);
        memcpy(data + 16, &n, sizeof(n));
        seal(data, sizeof(data));
    }
    put(b->fake.fd, 0, data, sizeof(data));
    if (examine(b) != CONTENT_OWN) fail_msg("%s", b->text);
    data[100] ^= 1;
    put(b->fake.fd, 0, data, sizeof(data));
    assert_int_equal(examine(b), CONTENT_KNOWN);
    assert_true(has(b, "dos"));
}

/* Whatever the fill, it is ours on the next run. */
static void many_fills(void **state) {
    struct bench *b = *state;
    unsigned char *data = malloc(128 << 10);

    assert_non_null(data);
    fill_ours(b, 8 * MIB);
    for (uint32_t i = 0; i < rounds(100, 10); i++) {
        struct data d;
        data_init(&d, i * 0x9e3779b9, 0, NULL);
        data_make(&d, data, 0, 128 << 10);
        put(b->fake.fd, 0, data, 128 << 10);
        if (examine(b) != CONTENT_OWN) fail_msg("run %u: %s", i, b->text);
    }
    free(data);
}

/* ---- what is put on top ---- */

static void expect_known(struct bench *b, const char *name) {
    if (examine(b) != CONTENT_KNOWN || !has(b, name)) fail_msg("%s: %s", name, b->text);
}

static void signatures_on_top_of_our_data(void **state) {
    struct bench *b = *state;
    const struct image_part part = {64 * MIB, 16 * MIB};
    static const char zeros[4096];
    int fd = b->fake.fd;

    for (unsigned i = 0; i < 8; i++) {
        fill_ours(b, SIZE);
        if (i < 3) put(fd, 0, zeros, sizeof(zeros)); /* the images only have what they are recognised by */
        switch (i) {
        case 0: image_ext4(fd, 0, SIZE, "data"), expect_known(b, "ext4"); break;
        case 1: image_lvm(fd, 0), expect_known(b, "LVM2_member"); break;
        case 2: image_swap(fd, 0, SIZE), expect_known(b, "swap"); break;
        case 3: image_md10(fd, 0, SIZE), expect_known(b, "linux_raid_member"); break;
        case 4: image_luks(fd, 0), expect_known(b, "crypto_LUKS"); break;
        case 5: image_vmfs(fd, 0), expect_known(b, "VMFS"); break;
        case 6: image_gpt(fd, SIZE, 512, &part, 1, 0), expect_known(b, "gpt"); break;
        default: image_gpt(fd, SIZE, 4096, &part, 1, 1), expect_known(b, "gpt"); break;
        }
    }
}

/* COMMAND with the object's path at its end; false: it is not installed. */
static bool made_by(struct bench *b, const char *command) {
    char line[300], tool[40];

    snprintf(tool, sizeof(tool), "%.*s", (int)strcspn(command, " "), command);
    snprintf(line, sizeof(line), "PATH=/usr/sbin:/sbin:$PATH; command -v %s >/dev/null 2>&1", tool);
    if (system(line) != 0) return false;
    fill_ours(b, SIZE);
    snprintf(line, sizeof(line), "PATH=/usr/sbin:/sbin:$PATH; %s /proc/%d/fd/%d >/dev/null 2>&1", command,
             (int)getpid(), b->fake.fd);
    if (system(line) != 0) fail_msg("%s", line);
    return true;
}

static void file_systems_on_top_of_our_data(void **state) {
    static const char *const made[][2] = {{"mkfs.ext4 -F -q", "ext4"},   {"mkfs.ext4 -F -q -O ^has_journal", "ext4"},
                                          {"mkfs.xfs -f", "xfs"},        {"mkfs.btrfs -f", "btrfs"},
                                          {"mkfs.vfat", "vfat"},         {"mkfs.minix -3", "minix"},
                                          {"mkswap", "swap"}};
    struct bench *b = *state;

    for (unsigned i = 0; i < sizeof(made) / sizeof(made[0]); i++)
        if (made_by(b, made[i][0])) expect_known(b, made[i][1]);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(own_proof_outweighs_an_imitation), T(a_tag_that_ends_like_a_boot_record), T(many_fills),
        T(signatures_on_top_of_our_data),    T(file_systems_on_top_of_our_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
