#include "base/zip.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define END_SIZE       22u
#define COMMENT_MAX    65535u
#define LOCATOR_SIZE   20u
#define END64_SIZE     56u
#define ENTRY_SIZE     46u
#define LOCAL_SIZE     30u
#define ENCRYPTED      1u
#define MADE_ON_UNIX   3
#define EXTRA_ZIP64    0x0001u
#define EXTRA_TIME     0x5455u
#define DIRECTORY_MODE (S_IFDIR | 0755)
#define FILE_MODE      (S_IFREG | 0644)

/* ---- numbers, the lowest byte first ---- */

static uint32_t base_zip_number16(const unsigned char *p)
{
	return (uint32_t)(p[0] | p[1] << 8);
}

static uint32_t base_zip_number32(const unsigned char *p)
{
	return base_zip_number16(p) | base_zip_number16(p + 2) << 16;
}

static uint64_t base_zip_number64(const unsigned char *p)
{
	return base_zip_number32(p) | (uint64_t)base_zip_number32(p + 4) << 32;
}

/* Four bits at a time: a table that is small enough to be read. */
uint32_t zip_crc(uint32_t crc, const void *bytes, size_t len)
{
	static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
		0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8,
		0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
	const unsigned char *p = bytes;
	crc = ~crc;
	for (; len > 0; len--) {
		crc ^= *p++;
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

/* ---- the directory ---- */

static int read_at(const struct zip_reader *z, uint64_t at, void *bytes, size_t len)
{
	if (at > z->size || len > z->size - at)
		return -EBADMSG;
	return z->read_at(z->arg, at, bytes, len);
}

/* The record at the very end, with a comment of the length that it says. */
static int find_end(const struct zip_reader *z, uint64_t *at, unsigned char end[END_SIZE])
{
	unsigned char tail[1024 + END_SIZE];
	uint64_t lowest = z->size > END_SIZE + COMMENT_MAX ? z->size - END_SIZE - COMMENT_MAX : 0;
	if (z->size < END_SIZE)
		return -EBADMSG;
	for (uint64_t high = z->size - END_SIZE + 1; high > lowest;) {
		uint64_t low = high - lowest > 1024 ? high - 1024 : lowest;
		size_t len = (size_t)(high - low) + END_SIZE - 1;
		int r = read_at(z, low, tail, len);
		if (r < 0)
			return r;
		for (size_t i = len - END_SIZE + 1; i-- > 0;) {
			if (memcmp(tail + i, "PK\5\6", 4) != 0 ||
				low + i + END_SIZE + base_zip_number16(tail + i + 20) != z->size)
				continue;
			*at = low + i;
			memcpy(end, tail + i, END_SIZE);
			return 0;
		}
		high = low;
	}
	return -EBADMSG;
}

/* For archives whose numbers are too large for the old record. */
static int read_end64(struct zip_reader *z, uint64_t end_at, uint64_t *directory_size)
{
	unsigned char locator[LOCATOR_SIZE], end[END64_SIZE];
	int r = end_at < LOCATOR_SIZE ? -EBADMSG
				      : read_at(z, end_at - LOCATOR_SIZE, locator, sizeof locator);
	if (r < 0 || memcmp(locator, "PK\6\7", 4) != 0 || base_zip_number32(locator + 4) != 0)
		return r < 0 ? r : -EBADMSG;
	z->directory_end = base_zip_number64(locator + 8);
	r = read_at(z, z->directory_end, end, sizeof end);
	if (r < 0 || memcmp(end, "PK\6\6", 4) != 0 || base_zip_number32(end + 16) != 0 ||
		base_zip_number32(end + 20) != 0 ||
		base_zip_number64(end + 24) != base_zip_number64(end + 32))
		return r < 0 ? r : -EBADMSG;
	z->left = base_zip_number64(end + 32);
	*directory_size = base_zip_number64(end + 40);
	z->directory_at = base_zip_number64(end + 48);
	return 0;
}

int zip_open(struct zip_reader *z)
{
	unsigned char end[END_SIZE];
	uint64_t end_at, size;
	int r = find_end(z, &end_at, end);
	if (r < 0)
		return r;
	z->directory_end = end_at;
	z->left = base_zip_number16(end + 10);
	size = base_zip_number32(end + 12);
	z->directory_at = base_zip_number32(end + 16);
	bool wide = z->left == 0xffff || size == 0xffffffff || z->directory_at == 0xffffffff;
	if (wide && (r = read_end64(z, end_at, &size)) < 0)
		return r;
	if (!wide && (base_zip_number32(end + 4) != 0 || base_zip_number16(end + 8) != z->left))
		return -EBADMSG;
	/* Bytes in front of the archive would shift every offset, so they are refused. */
	if (z->directory_at > z->directory_end || size != z->directory_end - z->directory_at)
		return -EBADMSG;
	z->at = z->directory_at;
	return 0;
}

/* ---- entries ---- */

/* The 64-bit forms of the numbers that did not fit, in this order and only those. */
static int take_zip64(struct zip_entry *e, const unsigned char *p, size_t len)
{
	uint64_t *const numbers[] = {&e->size, &e->packed, &e->header_at};
	for (size_t i = 0; i < 3; i++) {
		if (*numbers[i] != 0xffffffff)
			continue;
		if (len < 8)
			return -EBADMSG;
		*numbers[i] = base_zip_number64(p);
		p += 8;
		len -= 8;
	}
	return 0;
}

static int take_extra(struct zip_entry *e, const unsigned char *p, size_t len)
{
	while (len >= 4) {
		size_t size = base_zip_number16(p + 2);
		unsigned kind = base_zip_number16(p);
		p += 4;
		len -= 4;
		if (size > len)
			return -EBADMSG;
		if (kind == EXTRA_ZIP64 && take_zip64(e, p, size) < 0)
			return -EBADMSG;
		if (kind == EXTRA_TIME && size >= 5 && (p[0] & 1))
			e->mtime_s = (int32_t)base_zip_number32(p + 1);
		p += size;
		len -= size;
	}
	return 0;
}

/* Days since 1970 of a date that exists or not; the calendar of the last two centuries. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
	int64_t leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) && month > 2;
	int64_t past = year - 1;
	return (year - 1970) * 365 + (past / 4 - past / 100 + past / 400) - 477 +
	       before[month - 1] + leap + day - 1;
}

/* Converts a DOS time, which has no time zone, as UTC. */
static int64_t dos_time(uint32_t date, uint32_t time)
{
	int64_t month = date >> 5 & 15;
	if (month < 1 || month > 12)
		return 0;
	return days_of(1980 + (date >> 9), month, date & 31) * 86400 + (time >> 11) * 3600 +
	       (time >> 5 & 63) * 60 + (time & 31) * 2;
}

static uint32_t mode_of(const unsigned char *h, bool is_directory)
{
	uint32_t mode = h[5] == MADE_ON_UNIX ? base_zip_number32(h + 38) >> 16 : 0;
	if (is_directory)
		return S_IFDIR | (mode ? mode & 07777 : DIRECTORY_MODE & 07777);
	if ((mode & S_IFMT) == 0)
		return S_IFREG | (mode ? mode & 07777 : FILE_MODE & 07777);
	return mode;
}

/* Reads the variable part of a directory entry: name, extra fields, comment. */
static int take_rest(struct zip_reader *z, const unsigned char *h)
{
	struct zip_entry *e = &z->entry;
	size_t name_len = base_zip_number16(h + 28), extra_len = base_zip_number16(h + 30);
	unsigned char extra[COMMENT_MAX];
	e->name.len = 0;
	if (name_len == 0 || !buf_reserve(&e->name, name_len + 1))
		return name_len == 0 ? -EBADMSG : -ENOMEM;
	int r = read_at(z, z->at + ENTRY_SIZE, e->name.data, name_len);
	if (r < 0)
		return r;
	r = read_at(z, z->at + ENTRY_SIZE + name_len, extra, extra_len);
	if (r < 0)
		return r;
	e->name.data[name_len] = '\0';
	e->name.len = name_len + 1;
	return strlen(e->name.data) == name_len ? take_extra(e, extra, extra_len) : -EBADMSG;
}

int zip_next(struct zip_reader *z)
{
	unsigned char h[ENTRY_SIZE];
	struct zip_entry *e = &z->entry;
	if (z->left == 0)
		return z->at == z->directory_end ? 0 : -EBADMSG;
	int r = read_at(z, z->at, h, sizeof h);
	if (r < 0 || memcmp(h, "PK\1\2", 4) != 0)
		return r < 0 ? r : -EBADMSG;
	uint64_t whole = ENTRY_SIZE + base_zip_number16(h + 28) + base_zip_number16(h + 30) +
			 base_zip_number16(h + 32);
	if (whole > z->directory_end - z->at)
		return -EBADMSG;
	e->method = base_zip_number16(h + 10);
	e->crc = base_zip_number32(h + 16);
	e->packed = base_zip_number32(h + 20);
	e->size = base_zip_number32(h + 24);
	e->header_at = base_zip_number32(h + 42);
	e->mtime_s = dos_time(base_zip_number16(h + 14), base_zip_number16(h + 12));
	r = take_rest(z, h);
	if (r < 0)
		return r;
	e->mode = mode_of(h, e->name.data[e->name.len - 2] == '/');
	z->at += whole;
	z->left--;
	bool known = e->method == ZIP_DEFLATED || (e->method == ZIP_STORED && e->packed == e->size);
	return known && !(base_zip_number16(h + 8) & ENCRYPTED) ? 1 : -EBADMSG;
}

int zip_find_content(struct zip_reader *z, uint64_t *at)
{
	unsigned char h[LOCAL_SIZE];
	const struct zip_entry *e = &z->entry;
	int r = read_at(z, e->header_at, h, sizeof h);
	if (r < 0 || memcmp(h, "PK\3\4", 4) != 0)
		return r < 0 ? r : -EBADMSG;
	*at = e->header_at + LOCAL_SIZE + base_zip_number16(h + 26) + base_zip_number16(h + 28);
	return *at <= z->directory_at && e->packed <= z->directory_at - *at ? 0 : -EBADMSG;
}

void zip_reader_finish(struct zip_reader *z)
{
	buf_finish(&z->entry.name);
}
