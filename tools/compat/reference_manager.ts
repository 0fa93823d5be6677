// Stands where the reference memory server has its own index.ts: the same class, answered by `reverie mcp`.
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface Entity { name: string; entityType: string; observations: string[] }
export interface Relation { from: string; to: string; relationType: string }
export interface KnowledgeGraph { entities: Entity[]; relations: Relation[] }

const running: ChildProcess[] = [];
process.on('exit', () => running.forEach((child) => child.kill()));

export class KnowledgeGraphManager {
  private waiting = new Map<number, (answer: any) => void>();
  private next = 0;
  private child?: ChildProcess;
  private ready?: Promise<unknown>;

  constructor(private path: string) {}

  private start(): Promise<unknown> {
    this.child = spawn(process.env.REVERIE!, ['mcp', '--profile', 'reference', '--data', `${this.path}.reverie`]);
    running.push(this.child);
    createInterface({ input: this.child.stdout! }).on('line', (line) => {
      const answer = JSON.parse(line);
      this.waiting.get(answer.id)?.(answer);
    });
    const about = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'compat', version: '1' } };
    return this.ask('initialize', about).then(() => this.send({ method: 'notifications/initialized' }));
  }

  private send(message: object): void {
    this.child!.stdin!.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
  }

  private ask(method: string, params: object): Promise<any> {
    const id = this.next++;
    this.send({ id, method, params });
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  private async call(name: string, given: object = {}): Promise<any> {
    await (this.ready ??= this.start());
    const { result, error } = await this.ask('tools/call', { name, arguments: given });
    if (error) throw new Error(error.message);
    if (result.isError) throw new Error(result.content[0].text);
    return JSON.parse(result.content[0].text);
  }

  createEntities = async (entities: Entity[]) => (await this.call('create_entities', { entities })).entities;
  createRelations = async (relations: Relation[]) => (await this.call('create_relations', { relations })).relations;
  addObservations = async (observations: object[]) => (await this.call('add_observations', { observations })).results;
  deleteEntities = (entityNames: string[]) => this.call('delete_entities', { entityNames });
  deleteObservations = (deletions: object[]) => this.call('delete_observations', { deletions });
  deleteRelations = (relations: Relation[]) => this.call('delete_relations', { relations });
  readGraph = (): Promise<KnowledgeGraph> => this.call('read_graph');
  searchNodes = (query: string): Promise<KnowledgeGraph> => this.call('search_nodes', { query });
  openNodes = (names: string[]): Promise<KnowledgeGraph> => this.call('open_nodes', { names });
}
