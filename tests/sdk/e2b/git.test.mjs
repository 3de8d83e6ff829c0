// sandbox.git: everything it does is commands, so that this is mostly about what they need of a sandbox.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { GitAuthError, GitUpstreamError, InvalidArgumentError, Sandbox } from 'e2b';
import { failure, startServer, until } from './support.mjs';

await startServer();
const sandbox = await Sandbox.create({ timeoutMs: 600000 });
const { git } = sandbox;
const run = (command) => sandbox.commands.run(command);

describe('git', () => {
  it('works from init to push and pull', { timeout: 60000 }, async () => {
    await run('git init --bare -b main /home/user/origin.git');
    await git.configureUser('Ada', 'ada@example.org');
    assert.equal(await git.getConfig('user.name', { scope: 'global' }), 'Ada');
    await git.init('/home/user/one', { initialBranch: 'main' });
    await git.remoteAdd('/home/user/one', 'origin', '/home/user/origin.git');
    assert.equal(await git.remoteGet('/home/user/one', 'origin'), '/home/user/origin.git');
    await run('echo hello > /home/user/one/a.txt');
    assert.equal((await git.status('/home/user/one')).fileStatus[0].name, 'a.txt');
    await git.add('/home/user/one');
    await git.commit('/home/user/one', 'first', { authorName: 'Grace', authorEmail: 'grace@example.org' });
    assert.ok((await failure(git.pull('/home/user/one'))) instanceof GitUpstreamError);
    await git.push('/home/user/one', { remote: 'origin', branch: 'main', setUpstream: true });

    await git.clone('/home/user/origin.git', { path: '/home/user/two' });
    assert.equal((await run('cat /home/user/two/a.txt')).stdout, 'hello\n');
    await git.createBranch('/home/user/two', 'topic');
    assert.equal((await git.branches('/home/user/two')).currentBranch, 'topic');
    await git.checkoutBranch('/home/user/two', 'main');
    await git.deleteBranch('/home/user/two', 'topic');
    assert.deepEqual((await git.branches('/home/user/two')).branches, ['main']);

    await run('echo more >> /home/user/two/a.txt');
    await git.restore('/home/user/two', { paths: ['a.txt'] });
    assert.equal((await git.status('/home/user/two')).isClean, true);
    await run('echo more >> /home/user/two/a.txt');
    await git.add('/home/user/two', { files: ['a.txt'] });
    await git.reset('/home/user/two', { mode: 'hard' });
    assert.equal((await git.status('/home/user/two')).isClean, true);

    await run('echo second > /home/user/one/b.txt');
    await git.add('/home/user/one');
    await git.commit('/home/user/one', 'second');
    await git.push('/home/user/one');
    await git.pull('/home/user/two');
    assert.equal((await run('cat /home/user/two/b.txt')).stdout, 'second\n');
    await git.setConfig('pull.rebase', 'true', { scope: 'local', path: '/home/user/two' });
    assert.equal(await git.getConfig('pull.rebase', { scope: 'local', path: '/home/user/two' }), 'true');
  });

  it('says that a server asks for a password', { timeout: 60000 }, async () => {
    await sandbox.files.write(
      'closed.py',
      'import http.server\nclass H(http.server.BaseHTTPRequestHandler):\n  def do_GET(self):\n    self.send_response(401)\n    self.send_header("WWW-Authenticate", "Basic realm=x")\n    self.end_headers()\nhttp.server.HTTPServer(("127.0.0.1", 8123), H).serve_forever()\n',
    );
    const closed = await sandbox.commands.run('python3 closed.py', { background: true, timeoutMs: 0 });
    await until('it listens', () => run('curl -s http://127.0.0.1:8123/').then(() => true, () => false));
    const error = await failure(git.clone('http://127.0.0.1:8123/secret.git', { path: '/home/user/secret' }));
    assert.ok(error instanceof GitAuthError, String(error));
    await closed.kill();
  });

  it('keeps credentials that it is told to keep', async () => {
    await git.dangerouslyAuthenticate({ username: 'ada', password: 's3cret', host: 'git.example.org' });
    assert.match((await run('cat ~/.git-credentials')).stdout, /ada:s3cret@git.example.org/);
    assert.ok((await failure(git.clone('https://example.org/x.git', { password: 'p' }))) instanceof InvalidArgumentError);
  });
});
