// Prints vectors of CQL types from Cassandra's own classes: how values are serialized, and how they are ordered.
//
//   java -cp 'DIR/*' TypeVectors.java vectors.tsv      (DIR: the jars of a Cassandra 5.0, its lib directory)
//
// Each line: type, value as JSON, bytes in hexadecimal, and how the value compares with that of the line before, if that
// has the same type ('=' equal, '>' greater; the values of a type are sorted by the type's own order).

import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.*;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.cql3.QueryOptions;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.schema.CQLTypeParser;
import org.apache.cassandra.schema.Types;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.JsonUtils;

public class TypeVectors
{
    static final String[][] VALUES = {
        { "ascii", "\"\"", "\"a\"", "\"B\"", "\"~ x\"" },
        { "text", "\"zebra\"", "\"\u00e9t\u00e9\"", "\"Z\"", "\"\\u0001\"" },
        { "bigint", "0", "-1", "9223372036854775807", "-9223372036854775808" },
        { "blob", "\"0x\"", "\"0x00ff\"", "\"0x80\"", "\"0x7f01\"" },
        { "boolean", "true", "false" },
        { "date", "\"1970-01-01\"", "\"1969-12-31\"", "\"2024-02-29\"", "\"-0044-03-15\"" },
        { "decimal", "\"0\"", "\"1.0\"", "\"1.00\"", "\"-12.345\"", "\"1E+10\"", "\"0.0001\"", "\"9999999999999999999999.5\"", "\"-12.3451\"" },
        { "double", "0.0", "-1.5", "1e300", "-1e-300", "3.25" },
        { "duration", "\"0ns\"", "\"1y2mo3d4h5m6s7ms8us9ns\"", "\"-2d1ns\"", "\"300d\"" },
        { "float", "0.0", "-1.5", "1e30", "3.25" },
        { "inet", "\"127.0.0.1\"", "\"255.1.2.3\"", "\"2001:db8::1\"", "\"::1\"" },
        { "int", "0", "-1", "2147483647", "-2147483648", "65536" },
        { "smallint", "0", "-1", "32767", "-32768" },
        { "time", "\"00:00:00\"", "\"23:59:59.999999999\"", "\"12:34:56.789\"" },
        { "timestamp", "\"1970-01-01T00:00:00.000Z\"", "\"1969-12-31T23:59:59.999Z\"", "\"2024-02-29T12:00:00.123Z\"" },
        { "timeuuid", "\"50554d6e-29bb-11e5-b345-feff819cdc9f\"", "\"50554d6e-29bb-11e5-7345-feff819cdc9f\"", "\"00000000-0000-1000-8080-808080808080\"", "\"ffffffff-0000-1000-8080-808080808080\"" },
        { "tinyint", "0", "-1", "127", "-128" },
        { "uuid", "\"50554d6e-29bb-11e5-b345-feff819cdc9f\"", "\"00000000-0000-4000-8000-000000000000\"", "\"ffffffff-ffff-4fff-bfff-ffffffffffff\"", "\"60554d6e-29bb-11e4-b345-feff819cdc9f\"" },
        { "varint", "0", "-1", "127", "128", "-128", "-129", "1267650600228229401496703205376", "-1267650600228229401496703205377" },
        { "list<int>", "[]", "[1,2,3]", "[1,2]", "[-1]" },
        { "set<text>", "[]", "[\"a\",\"b\"]", "[\"b\"]" },
        { "map<text, bigint>", "{}", "{\"a\":1,\"b\":2}", "{\"a\":2}" },
        { "frozen<tuple<int, text>>", "[1,\"x\"]", "[1,null]", "[-1,\"y\"]", "[1,\"w\"]" },
        { "frozen<address>", "{\"street\":\"High\",\"number\":7}", "{\"street\":\"High\",\"number\":null}", "{\"street\":null,\"number\":7}" },
        { "frozen<map<int, frozen<list<frozen<set<uuid>>>>>>", "{\"1\":[[\"50554d6e-29bb-11e5-b345-feff819cdc9f\"],[]]}", "{}" },
        { "vector<float, 3>", "[1.0,2.0,-3.0]", "[1.0,2.0,3.0]" },
        { "vector<smallint, 2>", "[1,-1]", "[1,2]" },
        { "vector<text, 2>", "[\"a\",\"\"]", "[\"a\",\"bcd\"]" },
        { "vector<vector<int, 2>, 2>", "[[1,2],[3,4]]", "[[1,2],[3,-4]]" },
        { "vector<frozen<list<int>>, 2>", "[[1],[]]", "[[1],[2,3]]" },
    };

    public static void main(String[] args) throws Exception
    {
        DatabaseDescriptor.clientInitialization();
        Types.RawBuilder raw = Types.rawBuilder("ks");
        raw.add("address", List.of("street", "number"), List.of("text", "int"));
        Types types = raw.build();
        try (PrintStream out = new PrintStream(args[0], "UTF-8"))
        {
            for (String[] row : VALUES)
            {
                AbstractType<?> type = CQLTypeParser.parse("ks", row[0], types).freeze();
                List<Map.Entry<ByteBuffer, String>> values = new ArrayList<>();
                for (int i = 1; i < row.length; i++)
                {
                    ByteBuffer bytes = type.fromJSONObject(JsonUtils.decodeJson(row[i])).bindAndGet(QueryOptions.DEFAULT);
                    values.add(Map.entry(bytes, row[i]));
                }
                if (!row[0].equals("duration"))
                    values.sort((l, r) -> type.compare(l.getKey(), r.getKey()));
                ByteBuffer last = null;
                for (Map.Entry<ByteBuffer, String> value : values)
                {
                    String order = last == null || row[0].equals("duration") ? "" : type.compare(last, value.getKey()) == 0 ? "=" : ">";
                    out.println(row[0] + "\t" + value.getValue() + "\t" + ByteBufferUtil.bytesToHex(value.getKey()) + "\t" + order);
                    last = value.getKey();
                }
            }
        }
    }
}
