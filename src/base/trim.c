#include "base/trim.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Drops only read-only segments: writable pages would lose their content. */
static void drop_segment(const struct dl_phdr_info *object, const ElfW(Phdr) * segment)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
	uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_filesz;
	if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W) && end > begin)
		(void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static int drop_object(struct dl_phdr_info *object, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < object->dlpi_phnum; i++)
		drop_segment(object, &object->dlpi_phdr[i]);
	return 0;
}

void trim_memory(void)
{
	malloc_trim(0);
	dl_iterate_phdr(drop_object, NULL);
}
