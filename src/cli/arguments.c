#include "cli/arguments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/report.h"
#include "model/sandbox.h"

/* In base64 it must fit into a request. */
#define FILE_MAX ((size_t)20 << 20)

#define AT(member) offsetof(struct arguments, member)

const struct option cli_common_options[] = {
	{0, "json", NULL, OPTION_FLAG, AT(json), "print JSON"},
	{'h', "help", NULL, OPTION_FLAG, AT(help), "show this help"},
	{0},
};

const struct option cli_connection_options[] = {
	{0, "url", "URL", OPTION_STRING, AT(url),
		"the server (BUNKER_URL; default " BUNKER_DEFAULT_URL ")"},
	{0, "api-key", "KEY", OPTION_STRING, AT(api_key),
		"its key (BUNKER_API_KEY; default: the local server's key file)"},
	{0},
};

const struct option cli_sandbox_options[] = {
	{.name = "settings",
		.kind = OPTION_FIELDS,
		.offset = AT(settings),
		.fields = &sandbox_model},
	{0, "snapshot", "NAME[:TAG]", OPTION_STRING, AT(create.snapshot),
		"what its disk starts from instead; see: bunker snapshot"},
	{'v', "volume", "NAME:PATH", OPTION_LIST, AT(volumes),
		"mount a volume at PATH, with :ro behind it read-only; repeatable"},
	{'e', "env", "K=V", OPTION_LIST, AT(env),
		"environment variable; K alone takes yours; repeatable"},
	{'f', "file", "LOCAL:PATH", OPTION_LIST, AT(files),
		"put a local file at PATH, mode kept; repeatable"},
	{'m', "metadata", "K=V", OPTION_LIST, AT(metadata), "a label to find it by; repeatable"},
	{0, "dependency", "PACKAGE", OPTION_LIST, AT(dependencies),
		"install this apt package first; repeatable"},
	{0, "package", "PACKAGE", OPTION_LIST, AT(packages),
		"install this npm package first; repeatable"},
	{0},
};

const struct option cli_command_options[] = {
	{'c', "shell", "LINE", OPTION_STRING, AT(exec.shell),
		"run a line of shell instead of COMMAND"},
	{'i', "stdin", NULL, OPTION_FLAG, AT(with_input),
		"give the command what is piped into bunker"},
	{0},
};

/* Splits "K=V" in argv itself. A bare K is refused, or looked up in our environment. */
static int arguments_split_pair(char *item, bool is_env, struct bunker_pair *ret)
{
	char *equals = strchr(item, '=');
	if (equals == item || !*item)
		return cli_report("\"%s\" has no name in front of the =", item);
	if (equals) {
		*equals = '\0';
		*ret = (struct bunker_pair){item, equals + 1};
		return 0;
	}
	const char *value = is_env ? getenv(item) : NULL;
	if (!value)
		return is_env ? cli_report("%s is not set here; give it a value: -e %s=VALUE", item,
					item)
			      : cli_report("\"%s\" is not of the form KEY=VALUE", item);
	*ret = (struct bunker_pair){item, value};
	return 0;
}

static int resolve_pairs(const struct option_list *list, bool is_env, struct bunker_pair **ret)
{
	*ret = calloc(list->count + 1, sizeof **ret);
	if (!*ret)
		return cli_report("out of memory");
	for (size_t i = 0; i < list->count; i++)
		if (arguments_split_pair(list->items[i], is_env, &(*ret)[i]) < 0)
			return -1;
	return 0;
}

/* Splits "LOCAL:PATH" in argv itself: what is left in the list is LOCAL. */
static int split_file(char *item, struct bunker_file *file)
{
	char *colon = strchr(item, ':');
	if (!colon || colon == item || !colon[1])
		return cli_report("\"%s\" is not of the form LOCAL:PATH", item);
	*colon = '\0';
	file->path = colon + 1;
	return 0;
}

static int resolve_files(struct arguments *args)
{
	args->local_files = calloc(args->files.count + 1, sizeof *args->local_files);
	if (!args->local_files)
		return cli_report("out of memory");
	for (size_t i = 0; i < args->files.count; i++)
		if (split_file(args->files.items[i], &args->local_files[i]) < 0)
			return -1;
	return 0;
}

/* Splits "NAME:PATH" or "NAME:PATH:ro" in argv itself. */
static int split_mount(char *item, struct bunker_mount *mount)
{
	char *colon = strchr(item, ':'), *last = strrchr(item, ':');
	if (!colon || colon == item || colon[1] != '/')
		return cli_report("\"%s\" is not of the form NAME:/PATH or NAME:/PATH:ro", item);
	mount->read_only = last != colon && strcmp(last, ":ro") == 0;
	if (last != colon && (mount->read_only || strcmp(last, ":rw") == 0))
		*last = '\0';
	*colon = '\0';
	mount->volume = item;
	mount->path = colon + 1;
	return 0;
}

static int resolve_mounts(struct arguments *args)
{
	args->mounts = calloc(args->volumes.count + 1, sizeof *args->mounts);
	if (!args->mounts)
		return cli_report("out of memory");
	for (size_t i = 0; i < args->volumes.count; i++)
		if (split_mount(args->volumes.items[i], &args->mounts[i]) < 0)
			return -1;
	args->create.volumes = args->mounts;
	args->create.volume_count = args->volumes.count;
	return 0;
}

static int arguments_load_file(const char *local, struct bunker_file *file)
{
	autobuf content = {0};
	struct stat st;
	autoclose int fd = open(local, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cli_report("cannot read %s: %s", local, strerror(errno));
	int r = fd_read_all(fd, &content, FILE_MAX);
	if (r == -EFBIG)
		return cli_report("%s is larger than %zu MiB", local, FILE_MAX >> 20);
	if (r < 0)
		return cli_report("cannot read %s: %s", local, strerror(-r));
	file->mode = st.st_mode & 07777;
	file->size = content.len;
	file->data = take_ptr(content.data);
	return 0;
}

int cli_arguments_load_files(struct arguments *args)
{
	for (size_t i = 0; i < args->files.count; i++)
		if (arguments_load_file(args->files.items[i], &args->local_files[i]) < 0)
			return -1;
	return 0;
}

int cli_arguments_resolve(struct arguments *args)
{
	if (resolve_pairs(&args->env, true, &args->env_pairs) < 0 ||
		resolve_pairs(&args->metadata, false, &args->metadata_pairs) < 0 ||
		resolve_files(args) < 0 || resolve_mounts(args) < 0)
		return -1;
	args->create.env = args->env_pairs;
	args->create.env_count = args->env.count;
	args->create.metadata = args->list.metadata = args->metadata_pairs;
	args->create.metadata_count = args->list.metadata_count = args->metadata.count;
	args->create.files = args->local_files;
	args->create.file_count = args->files.count;
	args->create.dependencies = (const char *const *)args->dependencies.items;
	args->create.dependency_count = args->dependencies.count;
	args->create.packages = (const char *const *)args->packages.items;
	args->create.settings = args->settings.items;
	args->create.setting_count = args->settings.count;
	args->create.package_count = args->packages.count;
	return 0;
}

void cli_arguments_finish(struct arguments *args)
{
	for (size_t i = 0; args->local_files && i < args->files.count; i++)
		free((void *)args->local_files[i].data);
	free(args->local_files);
	free(args->env_pairs);
	free(args->metadata_pairs);
	free(args->env.items);
	free(args->metadata.items);
	free(args->files.items);
	free(args->unset.items);
	free(args->template.build_args.items);
	free(args->dependencies.items);
	free(args->template.allow.items);
	free(args->template.deny.items);
	free(args->packages.items);
	free(args->volumes.items);
	free(args->settings.items);
	free(args->mounts);
	buf_finish(&args->input);
}
