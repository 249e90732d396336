/** How docs/ is rendered: navigation and search, nothing that needs a network. Dead links fail the build. */
export default {
  title: 'Entresol',
  description: 'A Redis- and memcached-compatible store for the memory tier between DRAM and disk',
  lang: 'en-GB',
  outDir: '../build/docs',
  cacheDir: '../.cache/vitepress',
  cleanUrls: true,
  themeConfig: {
    search: { provider: 'local' },
    sidebar: [
      {
        text: 'Guide',
        items: [
          { text: 'Start', link: '/start' },
          { text: 'Migrate from Redis', link: '/migrate-from-redis' },
          { text: 'Migrate from memcached', link: '/migrate-from-memcached' },
          { text: 'Embed', link: '/embed' },
          { text: 'Test with it', link: '/testing' },
          { text: 'Operate', link: '/operate' },
          { text: 'The right place', link: '/doctor' },
          { text: 'Writes to persistent memory', link: '/nvm' },
        ],
      },
      {
        text: 'What differs',
        items: [
          { text: 'Redis', link: '/redis' },
          { text: 'memcached', link: '/memcached' },
        ],
      },
      {
        text: 'Reference',
        items: [
          { text: 'Configuration', link: '/reference/configuration' },
          { text: 'Redis commands', link: '/reference/redis-commands' },
          { text: 'memcached commands', link: '/reference/memcached-commands' },
          { text: 'Errors', link: '/reference/errors' },
          { text: 'Findings of doctor', link: '/reference/findings' },
        ],
      },
    ],
  },
};
